package rest

import (
	"net/http"
	"net/url"
	"strings"

	"waybill.dev/waybill/protocol/fault"
)

// consolePath is the console's path below the base path.
const consolePath = "/console"

// Site routes requests below the base path to the console or the API.
type Site struct {
	// Base is the base path: empty, or a path such as /a/b.
	Base string
	// API serves all paths outside the console. It receives paths without Base.
	API http.Handler
	// Console serves the paths below consolePath and receives them without that prefix;
	// nil disables the console.
	Console http.Handler
	// Admit sets the credential of a request from its console session, and limits the request to
	// it; leave is called at the end. nil disables sessions.
	Admit func(*http.Request) (admitted *http.Request, leave func(), err error)
	// Fail writes an error answer.
	Fail func(http.ResponseWriter, *http.Request, error)
}

// ServeHTTP routes a request. Probes are also served at the root, so that they need not
// know the base path.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == HealthPath || r.URL.Path == ReadyPath {
		s.API.ServeHTTP(w, r)
		return
	}
	in, ok := below(r, s.Base)
	if !ok {
		s.Fail(w, r, fault.New(fault.NotFound, "this host serves paths below %s/ only", s.Base))
		return
	}
	sub, isConsole := below(in, consolePath)
	switch {
	case !isConsole && s.Console != nil && isBrowserAtRoot(in):
		http.Redirect(w, r, s.Base+consolePath+"/", http.StatusFound) //nolint:gosec // G710: a path of the operator
	case !isConsole:
		s.serveAPI(w, in)
	case s.Console == nil:
		s.Fail(w, r, fault.New(fault.NotFound, "this host serves no console"))
	case sub.URL.Path == "":
		http.Redirect(w, r, s.Base+consolePath+"/", http.StatusPermanentRedirect) //nolint:gosec // G710: as above
	default:
		s.Console.ServeHTTP(w, sub)
	}
}

// isBrowserAtRoot reports whether a browser requests the root path, which the API does not
// serve.
func isBrowserAtRoot(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Trim(r.URL.Path, "/") == "" && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// serveAPI passes a request to the API.
func (s *Site) serveAPI(w http.ResponseWriter, r *http.Request) {
	if s.Admit != nil {
		admitted, leave, err := s.Admit(r)
		if err != nil {
			s.Fail(w, r, err)
			return
		}
		defer leave()
		r = admitted
	}
	s.API.ServeHTTP(w, r)
}

// below strips a path prefix from a request. The prefix must end at a path segment; ok is
// false if the request is not below it.
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
		return nil, false // the prefix itself is escaped
	}
	in := *r
	in.URL = &url.URL{}
	*in.URL = *r.URL
	in.URL.Path, in.URL.RawPath = path, raw
	return &in, true
}
