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

// Paths that the console's pages request in addition to the public API.
const (
	sessionPath = "/session"
	configPath  = "/config.json"
)

// Handler serves the console: its own two paths, and pages for all others. fail writes an
// error answer; secure sets the headers of every response.
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
	return fault.New(fault.MethodNotAllowed, "this path allows %s", allowed)
}

// signIn opens a session for a key or a one-time code.
func (k *Keeper) signIn(w http.ResponseWriter, r *http.Request) error {
	offered, err := readSignIn(r)
	if err != nil {
		return err
	}
	undo, wait := k.countAttempt(clientAddress(r), offered)
	if wait > 0 {
		return fault.New(fault.RateLimited, "too many sign-ins with a wrong key from this address").
			With("scope", "address").With("retryAfterMs", wait.Milliseconds()).After(wait)
	}
	now := k.clock()
	key := offered.Key
	if offered.Code != "" {
		var ok bool
		if key, ok = k.codes.redeem(offered.Code, now); !ok {
			return fault.New(fault.Unauthenticated, "the code was used already or has expired; sign in with an API key")
		}
	}
	if _, err := k.keys.Authenticate(bearer(key)); err != nil {
		return err
	}
	undo() // successful sign-ins do not count
	sealed, err := k.seals.seal(CookieName(r.Host), strings.TrimSpace(key), now.Add(k.cfg.Lifetime))
	if err != nil {
		return err
	}
	http.SetCookie(w, k.cookie(r, sealed))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// countAttempt counts a sign-in attempt; undo takes it back. A positive wait means that the
// attempt exceeds the limit.
func (k *Keeper) countAttempt(address string, o signInRequest) (undo func(), wait time.Duration) {
	undoAddress, wait := k.crowd.Take(address)
	if wait > 0 {
		return undoAddress, wait
	}
	prefix := strings.TrimSpace(o.Key)
	undoPrefix, wait := k.tries.Take(address + " " + prefix[:min(len(prefix), keyPrefixLength)])
	if wait > 0 {
		undoAddress()
	}
	return func() { undoPrefix(); undoAddress() }, wait
}

// signInRequest is the body of a sign-in: a key or a code.
type signInRequest struct {
	Key  string `json:"key"`
	Code string `json:"code"`
}

// maxSignInBytes limits the body of a sign-in.
const maxSignInBytes = 8 << 10

// readSignIn reads the body, which must be JSON: a form of another origin cannot send that.
func readSignIn(r *http.Request) (o signInRequest, err error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return o, fault.InvalidHeader("Content-Type", "want application/json")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxSignInBytes+1))
	if err != nil {
		return o, fault.New(fault.ValidationError, "the body could not be read completely").Wrap(err)
	}
	if len(body) > maxSignInBytes {
		return o, fault.New(fault.PayloadTooLarge, "the body is larger than %d bytes", maxSignInBytes).With("limitBytes", maxSignInBytes)
	}
	// The decoder's error may quote its input, which is a key.
	if strictjson.Read(body, &o) != nil || (o.Key == "") == (o.Code == "") {
		return o, fault.New(fault.ValidationError, "want an object with a string key, or with a string code")
	}
	return o, nil
}

// clientAddress returns the client's address without its port.
func clientAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// signOut ends the session, so that no copy of the cookie is valid, and deletes the cookie from
// the browser.
func (k *Keeper) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := checkWrite(r); err != nil {
		return err
	}
	s, err := k.session(r)
	if err != nil {
		return err
	}
	if s != nil {
		if err := k.ended.add(r.Context(), s.id); err != nil {
			return err
		}
	}
	http.SetCookie(w, k.cookie(r, ""))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// settings is what the pages need before any other request. It is public, except that
// session data is returned only to the session's holder.
type settings struct {
	BasePath string         `json:"basePath"`
	Mode     string         `json:"mode"`
	Version  string         `json:"version"`
	SignedIn bool           `json:"signedIn"`
	Session  *signedIn      `json:"session,omitempty"`
	Links    []Link         `json:"links"`
	Limits   map[string]any `json:"limits"`
	// StalledAfterMs is the time without events after which a run counts as stalled.
	StalledAfterMs int64 `json:"stalledAfterMs"`
}

// signedIn describes the session to its holder.
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
	open, err := k.session(r)
	if err != nil {
		return err
	}
	if open != nil {
		if p, err := k.keys.Authenticate(bearer(open.key)); err == nil { // otherwise the key was removed
			s.SignedIn = true
			s.Links = append(s.Links, k.cfg.Links...)
			s.Session = &signedIn{
				Tenant:    p.Tenant,
				KeyID:     p.KeyID,
				User:      p.User,
				Scopes:    p.Scopes(),
				ExpiresAt: wire.FormatTime(open.ends),
			}
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
