// Package session lets people sign in to the console. A browser gets a cookie that holds
// their API key, sealed: scripts cannot read it, and it is good for as long as the key is
// one of the host's and the session has not ended. The host stores nothing.
package session

import (
	"net/http"
	"time"

	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/admission"
	"waybill.dev/waybill/services/gateway/auth"
)

// CookieName is that of the session.
const CookieName = "waybill_session"

// WriteHeader has to be among the headers of what a session changes. A page of another
// origin cannot send it without being asked first, which this host answers with no.
const WriteHeader = "X-Waybill-Console"

// Lifetime is how long a session is good.
const Lifetime = 12 * time.Hour

// Who signs in with a wrong key may try burst times at once from one address with keys that
// begin alike, and then once in a while; with any keys crowd times as often. Behind a proxy
// all browsers have one address: one who mistypes a key keeps those with another from
// nothing.
const (
	triesPerSecond = 0.2
	burst          = 10
	crowd          = 20
	// alike is how many characters are the beginning of a key: more than a host puts before
	// all of them.
	alike = 12
)

// Modes of a host, as the console shows them.
const (
	Dev        = "dev"
	Production = "production"
)

// Config is what sessions and the console's pages go by.
type Config struct {
	// Keys seal; the same for all replicas.
	Keys token.Keys
	// Base is the host's base path: empty, or one like /a/b.
	Base string
	// HTTPS says that browsers reach the host over TLS, whoever ends it.
	HTTPS bool
	// Mode is Dev or Production.
	Mode string
	// Links lead out of the console; who has signed in is told them.
	Links []Link
	// StalledAfter is after how long without news a run counts as stalled.
	StalledAfter time.Duration
	// MaxBodyBytes is limits.maxRequestBodyBytes.
	MaxBodyBytes int64
}

// Link leads elsewhere. In braces its URL has members of a run, such as {runId}.
type Link struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// Keeper opens, checks and ends sessions. It is safe for concurrent use.
type Keeper struct {
	cfg   Config
	seals seals
	keys  *auth.Keys
	tries *admission.RateLimiter // by address and beginning of the key
	crowd *admission.RateLimiter // by address
	clock func() time.Time
	codes codes
}

// New makes the keeper of a host's sessions; keys are those one may sign in with.
func New(cfg Config, keys *auth.Keys, clock func() time.Time) (*Keeper, error) {
	s, err := newSeals(cfg.Keys)
	if err != nil {
		return nil, err
	}
	return &Keeper{
		cfg: cfg, seals: s, keys: keys, clock: clock,
		tries: admission.NewRateLimiter(triesPerSecond, burst, clock), crowd: admission.NewRateLimiter(crowd*triesPerSecond, crowd*burst, clock),
	}, nil
}

// bearer is the header that stands for a key.
func bearer(key string) string { return "Bearer " + key }

// Admit makes the credential of a request out of its session, unless it has one of its
// own. What a session is not good for is refused like a request without a credential.
func (k *Keeper) Admit(r *http.Request) error {
	own := r.Header.Get("Authorization") != ""
	key, _, ok := k.session(r)
	r.Header.Del("Cookie") // nobody behind this needs to know of it
	if own || !ok {
		return nil
	}
	if err := checkWrite(r); err != nil {
		return err
	}
	r.Header.Set("Authorization", bearer(key))
	return nil
}

// checkWrite keeps other origins from changing something with a session.
func checkWrite(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Header.Get(WriteHeader) == "1" {
		return nil
	}
	return fault.New(fault.Forbidden, "what a console session changes needs the header %s: 1", WriteHeader).With("headerRequired", WriteHeader)
}

// session gives the key of a request's session, and when it ends; ok is false when it has
// none that is good.
func (k *Keeper) session(r *http.Request) (key string, ends time.Time, ok bool) {
	for _, c := range r.CookiesNamed(CookieName) { // a host at a shorter path may have set one as well
		if key, ends, ok = k.seals.open(c.Value); ok && k.clock().Before(ends) {
			return key, ends, true
		}
	}
	return "", time.Time{}, false
}

// cookie makes the session's cookie; without a value it takes the browser's away.
func (k *Keeper) cookie(r *http.Request, value string) *http.Cookie {
	c := &http.Cookie{ //nolint:gosec // G124: Secure wherever there is TLS; a laptop has none
		Name: CookieName, Value: value, Path: k.cfg.Base + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: k.cfg.HTTPS || r.TLS != nil, MaxAge: int(Lifetime.Seconds()),
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}
