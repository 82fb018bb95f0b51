package session

import (
	"encoding/json"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"waybill.dev/waybill/internal/version"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// What the console's pages ask for besides the public API.
const (
	sessionPath = "/session"
	configPath  = "/config.json"
)

// Handler serves the console: its own two addresses, and pages for all others. fail
// writes an error answer, and secure the headers that go with everything.
func (k *Keeper) Handler(pages http.Handler, secure func(http.Header), fail func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		w.Header().Set("Cache-Control", "no-store")
		var err error
		switch r.URL.Path {
		case sessionPath:
			err = k.serveSession(w, r)
		case configPath:
			err = k.serveConfig(w, r)
		default:
			w.Header().Del("Cache-Control")
			pages.ServeHTTP(w, r)
		}
		if err != nil {
			fail(w, r, err)
		}
	})
}

func (k *Keeper) serveSession(w http.ResponseWriter, r *http.Request) error {
	switch r.Method {
	case http.MethodPost:
		return k.signIn(w, r)
	case http.MethodDelete:
		return k.signOut(w, r)
	}
	return notAllowed(w, "POST, DELETE")
}

func notAllowed(w http.ResponseWriter, allowed string) error {
	w.Header().Set("Allow", allowed)
	return fault.New(fault.MethodNotAllowed, "this address takes %s", allowed)
}

// signIn opens a session for a key, or for the key that a one-time code stands for.
func (k *Keeper) signIn(w http.ResponseWriter, r *http.Request) error {
	offered, err := readOffer(r)
	if err != nil {
		return err
	}
	undo, wait := k.try(from(r), offered)
	if wait > 0 {
		return fault.New(fault.RateLimited, "too many sign-ins with a wrong key from this address").
			With("scope", "address").With("retryAfterMs", wait.Milliseconds()).After(wait)
	}
	now := k.clock()
	key := offered.Key
	if offered.Code != "" {
		var ok bool
		if key, ok = k.codes.redeem(offered.Code, now); !ok {
			return fault.New(fault.Unauthenticated, "the code was used before, or is too old; sign in with an API key")
		}
	}
	if _, err := k.keys.Authenticate(bearer(key)); err != nil {
		return err
	}
	undo() // what was right does not count
	sealed, err := k.seals.seal(strings.TrimSpace(key), now.Add(Lifetime))
	if err != nil {
		return err
	}
	http.SetCookie(w, k.cookie(r, sealed))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// try counts a sign-in; with a wait it is one too many. undo takes it back.
func (k *Keeper) try(address string, o offer) (undo func(), wait time.Duration) {
	ofAll, wait := k.crowd.Take(address)
	if wait > 0 {
		return ofAll, wait
	}
	begins := strings.TrimSpace(o.Key)
	own, wait := k.tries.Take(address + " " + begins[:min(len(begins), alike)])
	if wait > 0 {
		ofAll()
	}
	return func() { own(); ofAll() }, wait
}

// offer is what one signs in with.
type offer struct {
	Key  string `json:"key"`
	Code string `json:"code"`
}

// maxOffer bounds the body of a sign-in.
const maxOffer = 8 << 10

// readOffer asks for JSON, which a form of another origin cannot send.
func readOffer(r *http.Request) (o offer, err error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return o, fault.New(fault.ValidationError, "Content-Type: want application/json")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxOffer+1))
	if err != nil {
		return o, fault.New(fault.ValidationError, "the body could not be read to its end").Wrap(err)
	}
	if len(body) > maxOffer {
		return o, fault.New(fault.PayloadTooLarge, "the body is larger than %d bytes", maxOffer)
	}
	// The error of a reader may quote what it read, which is a key.
	if strictjson.Read(body, &o) != nil || (o.Key == "") == (o.Code == "") {
		return o, fault.New(fault.ValidationError, "want an object with a text key, or with a text code")
	}
	return o, nil
}

// from is the address that a request came from, without its port.
func from(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// signOut takes the cookie back from the browser.
func (k *Keeper) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := checkWrite(r); err != nil {
		return err
	}
	http.SetCookie(w, k.cookie(r, ""))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// settings is what the pages have to know before they ask for anything else. It is for
// everybody; about the session only for whoever has it.
type settings struct {
	BasePath string         `json:"basePath"`
	Mode     string         `json:"mode"`
	Version  string         `json:"version"`
	SignedIn bool           `json:"signedIn"`
	Session  *signedIn      `json:"session,omitempty"`
	Links    []Link         `json:"links"`
	Limits   map[string]any `json:"limits"`
	// StalledAfterMs is after how long without news a run counts as stalled.
	StalledAfterMs int64 `json:"stalledAfterMs"`
}

// signedIn tells a session's holder what it may do.
type signedIn struct {
	Tenant    string       `json:"tenant"`
	KeyID     string       `json:"keyId"`
	User      string       `json:"user,omitempty"`
	Scopes    []auth.Scope `json:"scopes"`
	ExpiresAt string       `json:"expiresAt"`
}

func (k *Keeper) serveConfig(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return notAllowed(w, "GET, HEAD")
	}
	s := settings{
		BasePath: k.cfg.Base + "/", Mode: k.cfg.Mode, Version: version.Version, Links: []Link{},
		Limits: map[string]any{"maxRequestBodyBytes": k.cfg.MaxBodyBytes}, StalledAfterMs: k.cfg.StalledAfter.Milliseconds(),
	}
	if key, ends, ok := k.session(r); ok {
		if p, err := k.keys.Authenticate(bearer(key)); err == nil { // else the key is none any more
			s.SignedIn = true
			s.Links = append(s.Links, k.cfg.Links...)
			s.Session = &signedIn{Tenant: p.Tenant, KeyID: p.KeyID, User: p.User, Scopes: p.Scopes(), ExpiresAt: wire.FormatTime(ends)}
		}
	}
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(body) // the client may have gone
	return nil
}
