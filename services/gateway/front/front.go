// Package front is what a request over HTTP meets first: the base path below which the
// host lives, and the console beside the API.
package front

import (
	"net/http"
	"net/url"
	"strings"

	"waybill.dev/waybill/protocol/fault"
)

// consolePath is where the console is, below the base path.
const consolePath = "/console"

// Door leads each request to what answers it.
type Door struct {
	// Base is the path below which everything is: empty, or one like /a/b.
	Base string
	// API answers what is not the console's. Its paths have no base.
	API http.Handler
	// Console answers what lies below its path, by paths below that; nil: there is
	// none.
	Console http.Handler
	// Admit makes a credential of a request's session; nil: there are no sessions.
	Admit func(*http.Request) error
	// Fail writes an error answer.
	Fail func(http.ResponseWriter, *http.Request, error)
}

// ServeHTTP hands a request on. Probes reach the host at the root as well: who runs it
// need not know its base path.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
		d.API.ServeHTTP(w, r)
		return
	}
	in, ok := below(r, d.Base)
	if !ok {
		d.Fail(w, r, fault.New(fault.NotFound, "this host is below %s/", d.Base))
		return
	}
	sub, ours := below(in, consolePath)
	switch {
	case !ours && d.Console != nil && looksAround(in):
		http.Redirect(w, r, d.Base+consolePath+"/", http.StatusFound)
	case !ours:
		d.call(w, in)
	case d.Console == nil:
		d.Fail(w, r, fault.New(fault.NotFound, "this host serves no console"))
	case sub.URL.Path == "":
		http.Redirect(w, r, d.Base+consolePath+"/", http.StatusPermanentRedirect)
	default:
		d.Console.ServeHTTP(w, sub)
	}
}

// looksAround reports a person's browser at the address of the host itself, where the API has nothing.
func looksAround(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Trim(r.URL.Path, "/") == "" && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// call hands a request to the API.
func (d *Door) call(w http.ResponseWriter, r *http.Request) {
	if d.Admit != nil {
		if err := d.Admit(r); err != nil {
			d.Fail(w, r, err)
			return
		}
	}
	d.API.ServeHTTP(w, r)
}

// below gives the request as one below a prefix, which ends where a part of the path
// does; ok is false when it is not below.
func below(r *http.Request, prefix string) (_ *http.Request, ok bool) {
	if prefix == "" {
		return r, true
	}
	path, found := strings.CutPrefix(r.URL.Path, prefix)
	if !found || path != "" && path[0] != '/' {
		return nil, false
	}
	raw, found := strings.CutPrefix(r.URL.RawPath, prefix)
	if r.URL.RawPath != "" && !found {
		return nil, false // the prefix itself is spelled with escapes
	}
	in := *r
	in.URL = &url.URL{}
	*in.URL = *r.URL
	in.URL.Path, in.URL.RawPath = path, raw
	return &in, true
}
