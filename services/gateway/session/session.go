// Package session implements sign-in to the console. The browser gets a cookie with the
// encrypted API key. Scripts cannot read it. It is valid until the session expires or ends, or
// the key is removed from the host. The host stores no sessions, only which ones ended.
package session

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/lru"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/admission"
	"waybill.dev/waybill/services/gateway/auth"
)

// cookieName is the name of the session cookie, before the host's port. Cookies know no ports:
// without it, two hosts at one address would overwrite each other's session.
const cookieName = "waybill_session"

// CookieName returns the name of the session cookie at a host, as the Host header names it. The
// cookie is valid under this name only.
func CookieName(host string) string {
	if _, port, err := net.SplitHostPort(host); err == nil && port != "" {
		return cookieName + "_" + port
	}
	return cookieName
}

// WriteHeader is required on requests that change something with a session. A page of
// another origin cannot send it without a CORS preflight, which this host rejects.
const WriteHeader = "X-Waybill-Console"

// Lifetime is the default validity of a session.
const Lifetime = 12 * time.Hour

// Limits of failed sign-ins. One address may try keys with the same prefix burst times, then
// triesPerSecond; with any keys, crowd times as often. The limit by prefix exists because all
// browsers behind a proxy share one address: mistyping one key must not block other keys.
const (
	triesPerSecond = 0.2
	burst          = 10
	crowd          = 20
	// keyPrefixLength is the length of the key prefix that attempts are counted by. It
	// exceeds the prefix that a host puts before all keys.
	keyPrefixLength = 12
)

// Modes of a host, as the console shows them.
const (
	Dev        = "dev"
	Production = "production"
)

// Config is the configuration of sessions and of the console's pages.
type Config struct {
	// Keys encrypt cookies; the same on all replicas.
	Keys token.Keys
	// Base is the host's base path: empty, or a path such as /a/b.
	Base string
	// HTTPS means that browsers reach the host over TLS, even if a proxy terminates it.
	HTTPS bool
	// Mode is Dev or Production.
	Mode string
	// Links lead to other sites. Only signed-in users get them.
	Links []Link
	// StalledAfter is the time without events after which a run counts as stalled.
	StalledAfter time.Duration
	// MaxBodyBytes is limits.maxRequestBodyBytes.
	MaxBodyBytes int64
	// Lifetime is the validity of a session; 0 uses the default.
	Lifetime time.Duration
	// Ended stores which sessions ended, for longer than their Lifetime; the same on all
	// replicas.
	Ended kv.Store
}

// Link is a link to another site. Its URL may contain members of a run in braces, such as
// {runId}.
type Link struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// Keeper opens, checks and ends sessions. It is safe for concurrent use.
type Keeper struct {
	cfg   Config
	seals seals
	keys  *auth.Keys
	tries *admission.RateLimiter // by address and key prefix
	crowd *admission.RateLimiter // by address
	clock func() time.Time
	codes codes
	ended ended
}

// New makes a keeper; keys are the API keys that can sign in.
func New(cfg Config, keys *auth.Keys, clock func() time.Time) (*Keeper, error) {
	s, err := newSeals(cfg.Keys)
	if err != nil {
		return nil, err
	}
	cfg.Lifetime = cmp.Or(cfg.Lifetime, Lifetime)
	return &Keeper{
		cfg:   cfg,
		seals: s,
		keys:  keys,
		clock: clock,
		ended: ended{store: cfg.Ended, clock: clock, known: lru.New[string, verdict](maxVerdicts)},
		tries: admission.NewRateLimiter(triesPerSecond, burst, clock),
		crowd: admission.NewRateLimiter(crowd*triesPerSecond, crowd*burst, clock),
	}, nil
}

// bearer returns the Authorization header of a key.
func bearer(key string) string { return "Bearer " + key }

// Admit sets the credential of a request from its session, unless the request has its own. A
// request with an invalid session is treated like one without a credential. The admitted request
// ends with its session, which matters to streams; leave must be called at its end.
func (k *Keeper) Admit(r *http.Request) (admitted *http.Request, leave func(), err error) {
	own := r.Header.Get("Authorization") != ""
	s, err := k.session(r)
	r.Header.Del("Cookie") // later handlers must not see the cookie
	if own || s == nil && err == nil {
		return r, func() {}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if err := checkWrite(r); err != nil {
		return nil, nil, err
	}
	r.Header.Set("Authorization", bearer(s.key))
	if !isRead(r) { // a change that has begun goes on
		return r, func() {}, nil
	}
	ctx, end := context.WithCancel(r.Context())
	late := time.AfterFunc(verdictFor, func() { k.endWith(ctx, s, end) })
	return r.WithContext(ctx), func() { late.Stop(); end() }, nil
}

// endWith calls end when the session has ended, unless ctx ends before.
func (k *Keeper) endWith(ctx context.Context, s *session, end func()) {
	again := time.NewTicker(verdictFor)
	defer again.Stop()
	for {
		over, err := k.ended.has(ctx, s.id)
		if err == nil && over || !k.clock().Before(s.ends) { // while the store is away, it goes on
			end()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// checkWrite rejects changes from other origins.
func checkWrite(r *http.Request) error {
	if isRead(r) || r.Header.Get(WriteHeader) == "1" {
		return nil
	}
	return fault.New(fault.Forbidden, "changes with a console session require the header %s: 1", WriteHeader).With("headerRequired", WriteHeader)
}

// session is an open session.
type session struct {
	key  string
	ends time.Time
	// id identifies the session without revealing it.
	id string
}

// session returns the session of a request; nil without a valid one. It fails if it cannot tell
// whether the session has ended.
func (k *Keeper) session(r *http.Request) (*session, error) {
	name := CookieName(r.Host)
	for _, c := range r.CookiesNamed(name) { // a host at a shorter base path may have set one, too
		key, ends, ok := k.seals.open(name, c.Value)
		if !ok || !k.clock().Before(ends) {
			continue
		}
		s := &session{key: key, ends: ends, id: idOf(c.Value)}
		if over, err := k.ended.has(r.Context(), s.id); err != nil || !over {
			return s, err
		}
	}
	return nil, nil //nolint:nilnil // a request without a session
}

// cookie makes the session cookie. An empty value deletes it from the browser.
func (k *Keeper) cookie(r *http.Request, value string) *http.Cookie {
	c := &http.Cookie{ //nolint:gosec // G124: Secure wherever there is TLS; a laptop has none
		Name: CookieName(r.Host), Value: value, Path: k.cfg.Base + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: k.cfg.HTTPS || r.TLS != nil, MaxAge: int(k.cfg.Lifetime.Seconds()),
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}
