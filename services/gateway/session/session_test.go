package session

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

const (
	key      = "hk_live_a-key-of-a-tenant"
	otherKey = "hk_live_another-key"
)

// clock is a fake clock. Timers of a keeper read it, too.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) get() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// host is a keeper behind its handler.
type host struct {
	*Keeper
	clock *clock
	http.Handler
}

func newHost(t *testing.T, edit func(*Config), keys ...string) *host {
	t.Helper()
	var specs []auth.Spec
	for _, k := range append(keys, key) {
		specs = append(specs, auth.Spec{Key: k, Tenant: "acme", Scopes: []auth.Scope{auth.RunsRead}})
	}
	known, err := auth.NewKeys(specs)
	require.NoError(t, err)
	cfg := Config{Keys: token.Keys{1: []byte(strings.Repeat("k", 32))}, Mode: Dev, StalledAfter: time.Minute, Ended: memory.New()}
	if edit != nil {
		edit(&cfg)
	}
	c := &clock{now: time.Unix(1_800_000_000, 0)}
	k, err := New(cfg, known, c.get)
	require.NoError(t, err)
	pages := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("page")) })
	return &host{k, c, k.Handler(pages, func(h http.Header) { h.Set("X-Secure", "1") }, fail)}
}

// fail writes what a test reads.
func fail(w http.ResponseWriter, _ *http.Request, err error) {
	f, _ := fault.As(err)
	w.WriteHeader(f.Row().HTTP)
	_, _ = w.Write(f.Envelope())
}

func (h *host) send(method, path, body string, edit ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, e := range edit {
		e(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// signIn returns the cookie of a new session.
func (h *host) signIn(t *testing.T, key string) *http.Cookie {
	t.Helper()
	w := h.send(http.MethodPost, "/session", `{"key":"`+key+`"}`)
	require.Equal(t, http.StatusNoContent, w.Code, w.Body)
	require.Zero(t, w.Body.Len())
	return w.Result().Cookies()[0]
}

func with(c *http.Cookie) func(*http.Request) { return func(r *http.Request) { r.AddCookie(c) } }

// admitted returns the Authorization header of a request with a cookie.
func (h *host) admitted(t *testing.T, method string, c *http.Cookie, headers ...string) (string, error) {
	t.Helper()
	r := httptest.NewRequest(method, "/v1/runs", nil)
	r.AddCookie(c)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	_, leave, err := h.Admit(r)
	if err == nil {
		leave()
	}
	require.Empty(t, r.Header.Get("Cookie"), "later handlers do not see the cookie")
	return r.Header.Get("Authorization"), err
}

// C1c: the cookie's attributes.
func TestSignIn_SetsAnHTTPOnlySameSiteCookie(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		edit   func(*Config)
		path   string
		secure bool
	}{
		"at the root":      {nil, "/", false},
		"below a path":     {func(c *Config) { c.Base = "/a/b" }, "/a/b/", false},
		"reached by https": {func(c *Config) { c.HTTPS = true }, "/", true},
	} {
		h := newHost(t, tt.edit)
		c := h.signIn(t, key)
		require.True(t, c.HttpOnly, name)
		require.Equal(t, http.SameSiteStrictMode, c.SameSite, name)
		require.Equal(t, tt.path, c.Path, name)
		require.Equal(t, tt.secure, c.Secure, name)
		require.Equal(t, int(Lifetime.Seconds()), c.MaxAge, name)
		require.NotContains(t, c.Value, key, name)
	}
}

func TestAdmit_SetsTheCredentialOfASession(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	c := h.signIn(t, key)
	got, err := h.admitted(t, http.MethodGet, c)
	require.NoError(t, err)
	require.Equal(t, "Bearer "+key, got)

	got, err = h.admitted(t, http.MethodPost, c, "Authorization", "Bearer "+otherKey)
	require.NoError(t, err)
	require.Equal(t, "Bearer "+otherKey, got, "a credential of its own wins, and needs no header")

	h.clock.add(Lifetime)
	got, err = h.admitted(t, http.MethodGet, c)
	require.NoError(t, err)
	require.Empty(t, got, "the session has ended")
}

// C1c: a write without the header.
func TestAdmit_RejectsWritesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	c := h.signIn(t, key)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		got, err := h.admitted(t, method, c)
		require.Equal(t, fault.Forbidden, fault.CodeOf(err), method)
		require.Empty(t, got, method)
		got, err = h.admitted(t, method, c, WriteHeader, "1")
		require.NoError(t, err, method)
		require.Equal(t, "Bearer "+key, got, method)
	}
	require.Equal(t, http.StatusForbidden, h.send(http.MethodDelete, "/session", "", with(c)).Code)
}

func TestAdmit_WorksAtEveryReplicaAndWithOlderKeys(t *testing.T) {
	t.Parallel()
	c := newHost(t, nil).signIn(t, key)
	newer := newHost(t, func(c *Config) { c.Keys[2] = []byte(strings.Repeat("n", 32)) })
	for _, h := range []*host{newHost(t, nil), newer} {
		got, err := h.admitted(t, http.MethodGet, c)
		require.NoError(t, err)
		require.Equal(t, "Bearer "+key, got)
	}
	stranger := newHost(t, func(c *Config) { c.Keys = token.Keys{1: []byte(strings.Repeat("s", 32))} })
	for _, cookie := range []*http.Cookie{c, newer.signIn(t, key)} {
		got, err := stranger.admitted(t, http.MethodGet, cookie)
		require.NoError(t, err)
		require.Empty(t, got)
	}
}

func FuzzOpen_TakesOnlyWhatItMade(f *testing.F) {
	s, err := newSeals(token.Keys{1: []byte(strings.Repeat("k", 32))})
	require.NoError(f, err)
	made, err := s.seal(cookieName, key, time.Unix(1_800_000_000, 0))
	require.NoError(f, err)
	f.Add(made)
	f.Add(made[:len(made)-4])
	f.Add("2" + made[1:])
	f.Add("1.")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		got, _, ok := s.open(cookieName, text)
		require.Equal(t, text == made, ok)
		if ok {
			require.Equal(t, key, got)
		}
	})
}

func TestSignIn_RejectsWithoutRepeatingTheKey(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	for _, tt := range []struct {
		body string
		code int
	}{
		{`{"key":"` + otherKey + `"}`, http.StatusUnauthorized},
		{`{"code":"` + otherKey + `"}`, http.StatusUnauthorized},
		{`{"key":"` + otherKey + `","code":"x"}`, http.StatusBadRequest},
		{`{"key":["` + otherKey + `"]}`, http.StatusBadRequest},
		{`{"` + otherKey + `"`, http.StatusBadRequest},
		{`{}`, http.StatusBadRequest},
		{`{"key":"` + strings.Repeat(otherKey, 1000) + `"}`, http.StatusRequestEntityTooLarge},
	} {
		w := h.send(http.MethodPost, "/session", tt.body)
		require.Equal(t, tt.code, w.Code, tt.body)
		require.NotContains(t, w.Body.String(), otherKey)
		require.Empty(t, w.Result().Cookies(), tt.body)
	}
	form := h.send(http.MethodPost, "/session", `{"key":"`+key+`"}`, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") })
	require.Equal(t, http.StatusBadRequest, form.Code, "a form of another origin could send it")
	require.Equal(t, http.StatusMethodNotAllowed, h.send(http.MethodGet, "/session", "").Code)
}

func TestSignIn_LimitsGuesses(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	for range 3 * burst {
		h.signIn(t, key) // what is right does not count
	}
	for range burst {
		require.Equal(t, http.StatusUnauthorized, h.send(http.MethodPost, "/session", `{"key":"wrong"}`).Code)
	}
	w := h.send(http.MethodPost, "/session", `{"key":"wrong"}`)
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Contains(t, w.Body.String(), "rate_limited")
	h.signIn(t, key) // another key behind the same proxy
	h.clock.add(time.Minute)
	require.Equal(t, http.StatusUnauthorized, h.send(http.MethodPost, "/session", `{"key":"wrong"}`).Code)
}

func TestSignIn_LimitsGuessesOfTheEndOfAKey(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	guess := func(i int) int {
		return h.send(http.MethodPost, "/session", fmt.Sprintf(`{"key":"%s%d"}`, key[:keyPrefixLength], i)).Code
	}
	for i := range burst {
		require.Equal(t, http.StatusUnauthorized, guess(i))
	}
	require.Equal(t, http.StatusTooManyRequests, guess(burst))
	require.Equal(t, http.StatusTooManyRequests, h.send(http.MethodPost, "/session", `{"key":"`+key+`"}`).Code, "the right key is limited, too")
	elsewhere := h.send(http.MethodPost, "/session", `{"key":"`+key+`"}`, func(r *http.Request) { r.RemoteAddr = "192.0.2.77:1" })
	require.Equal(t, http.StatusNoContent, elsewhere.Code)
	h.clock.add(time.Minute)
	h.signIn(t, key)
}

func TestSignIn_LimitsAllGuessesOfAnAddress(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	guess := func(i int) int { return h.send(http.MethodPost, "/session", fmt.Sprintf(`{"key":"%d-wrong"}`, i)).Code }
	for i := range crowd * burst {
		require.Equal(t, http.StatusUnauthorized, guess(i))
	}
	require.Equal(t, http.StatusTooManyRequests, guess(crowd*burst))
	for range 2 * burst { // what was refused did not count against its key
		require.Equal(t, http.StatusTooManyRequests, h.send(http.MethodPost, "/session", `{"key":"`+key+`"}`).Code)
	}
	h.clock.add(time.Second)
	h.signIn(t, key)
}

func TestMint_ReturnsACodeForOneSignIn(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	body := `{"code":"` + h.Mint(key) + `"}`
	w := h.send(http.MethodPost, "/session", body)
	require.Equal(t, http.StatusNoContent, w.Code)
	got, err := h.admitted(t, http.MethodGet, w.Result().Cookies()[0])
	require.NoError(t, err)
	require.Equal(t, "Bearer "+key, got)
	require.Equal(t, http.StatusUnauthorized, h.send(http.MethodPost, "/session", body).Code, "once")

	late := h.Mint(key)
	h.clock.add(codeLifetime)
	require.Equal(t, http.StatusUnauthorized, h.send(http.MethodPost, "/session", `{"code":"`+late+`"}`).Code)
}

func TestSignOut_DeletesTheCookie(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(c *Config) { c.Base = "/a/b" })
	w := h.send(http.MethodDelete, "/session", "", with(h.signIn(t, key)), func(r *http.Request) { r.Header.Set(WriteHeader, "1") })
	require.Equal(t, http.StatusNoContent, w.Code)
	c := w.Result().Cookies()[0]
	require.Equal(t, cookieName, c.Name)
	require.Equal(t, "/a/b/", c.Path)
	require.Negative(t, c.MaxAge)
	require.Empty(t, c.Value)
}

func TestSignOut_EndsCopiesOfTheCookie(t *testing.T) {
	t.Parallel()
	shared := memory.New()
	h := newHost(t, func(c *Config) { c.Ended = shared })
	replica := newHost(t, func(c *Config) { c.Ended = shared })
	c, other := h.signIn(t, key), h.signIn(t, key)
	got, err := replica.admitted(t, http.MethodGet, c)
	require.NoError(t, err)
	require.Equal(t, "Bearer "+key, got)
	signOut := func() int {
		return h.send(http.MethodDelete, "/session", "", with(c), func(r *http.Request) { r.Header.Set(WriteHeader, "1") }).Code
	}
	require.Equal(t, http.StatusNoContent, signOut())
	require.Equal(t, http.StatusNoContent, signOut(), "again")
	replica.clock.add(verdictFor)
	for _, at := range []*host{h, replica, newHost(t, func(c *Config) { c.Ended = shared })} {
		got, err := at.admitted(t, http.MethodGet, c)
		require.NoError(t, err)
		require.Empty(t, got, "the copy has no session")
		got, err = at.admitted(t, http.MethodGet, other)
		require.NoError(t, err)
		require.Equal(t, "Bearer "+key, got, "other sessions of the key go on")
	}
	require.Contains(t, h.send(http.MethodGet, "/config.json", "", with(c)).Body.String(), `"signedIn":false`)
}

// broken is a store that cannot be reached.
type broken struct{ kv.Store }

func (broken) Get(context.Context, string) (kv.Entry, error) { return kv.Entry{}, kv.ErrUnavailable }

func TestAdmit_FailsIfTheSessionMayHaveEnded(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(c *Config) { c.Ended = broken{} })
	_, err := h.admitted(t, http.MethodGet, h.signIn(t, key))
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
}

func TestCookie_IsValidAtItsPortOnly(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	at := func(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }
	w := h.send(http.MethodPost, "/session", `{"key":"`+key+`"}`, at("127.0.0.1:8080"))
	c := w.Result().Cookies()[0]
	require.Equal(t, "waybill_session_8080", c.Name)
	signedIn := func(host string, c http.Cookie) bool {
		w := h.send(http.MethodGet, "/config.json", "", with(&c), at(host))
		return strings.Contains(w.Body.String(), `"signedIn":true`)
	}
	require.True(t, signedIn("127.0.0.1:8080", *c))
	require.False(t, signedIn("127.0.0.1:9000", *c))
	renamed := *c
	renamed.Name = "waybill_session_9000"
	require.False(t, signedIn("127.0.0.1:9000", renamed), "another host at this address cannot use it under its own name")
}

func TestConfig_HasTheUserButNoSecret(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(c *Config) {
		c.Base, c.MaxBodyBytes, c.Links = "/a/b", 7, []Link{{"Logs", "https://logs.example/{runId}"}}
	}, otherKey)
	w := h.send(http.MethodGet, "/config.json", "")
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, "1", w.Header().Get("X-Secure"))
	var got map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	require.Equal(t, "/a/b/", got["basePath"])
	require.Equal(t, Dev, got["mode"])
	require.Equal(t, false, got["signedIn"])
	require.Equal(t, []any{}, got["links"], "not signed in")
	require.Equal(t, map[string]any{"maxRequestBodyBytes": 7.0}, got["limits"])
	require.EqualValues(t, 60_000, got["stalledAfterMs"])
	require.NotContains(t, got, "session")

	c := h.signIn(t, otherKey)
	w = h.send(http.MethodGet, "/config.json", "", with(c))
	require.NotContains(t, w.Body.String(), otherKey)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	require.Equal(t, true, got["signedIn"])
	require.Equal(t, []any{map[string]any{"name": "Logs", "url": "https://logs.example/{runId}"}}, got["links"])
	require.Equal(t, []any{"runs:read"}, got["session"].(map[string]any)["scopes"])

	// Without the key among the host's, the session is over.
	w = newHost(t, nil).send(http.MethodGet, "/config.json", "", with(c))
	require.Contains(t, w.Body.String(), `"signedIn":false`)
	require.Equal(t, "page", h.send(http.MethodGet, "/runs", "").Body.String())
}

// A stream that was opened with a session ends with it: by a sign-out here or at another gateway,
// or when its time is over. A request that ends before leaves nothing behind.
func TestAdmit_EndsStreamsWithTheirSession(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]func(t *testing.T, h *host, c *http.Cookie){
		"a sign-out": func(t *testing.T, h *host, c *http.Cookie) {
			t.Helper()
			w := h.send(http.MethodDelete, "/session", "", with(c), func(r *http.Request) { r.Header.Set(WriteHeader, "1") })
			require.Equal(t, http.StatusNoContent, w.Code)
		},
		"a sign-out at another gateway": func(t *testing.T, h *host, c *http.Cookie) {
			t.Helper()
			_, err := h.cfg.Ended.Put(t.Context(), endedKey(idOf(c.Value)), []byte("{}"))
			require.NoError(t, err)
			h.clock.add(2 * verdictFor)
		},
		"its time": func(_ *testing.T, h *host, _ *http.Cookie) { h.clock.add(Lifetime) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t, nil)
				c := h.signIn(t, key)
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/runs:watch", http.NoBody)
				r.AddCookie(c)
				stream, leave, err := h.Admit(r)
				require.NoError(t, err)
				defer leave()
				time.Sleep(5 * verdictFor) //nolint:forbidigo // the clock of synctest
				require.NoError(t, stream.Context().Err(), "the session is open")
				finish(t, h, c)
				time.Sleep(2 * verdictFor) //nolint:forbidigo // the clock of synctest
				require.Error(t, stream.Context().Err())
			})
		})
	}
}
