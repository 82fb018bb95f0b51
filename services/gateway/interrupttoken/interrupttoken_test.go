package interrupttoken_test

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/interrupttoken"
)

func key(b byte) []byte { return []byte(strings.Repeat(string(b), token.MinKey)) }

func tokens(t testing.TB, keys token.Keys) *interrupttoken.Tokens {
	t.Helper()
	ts, err := interrupttoken.New(keys)
	require.NoError(t, err)
	return ts
}

var (
	now    = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	both   = token.Keys{1: key('a'), 2: key('b')}
	claims = interrupttoken.Claims{
		Tenant:      "acme-corp",
		RunID:       "run_1",
		NodeID:      "gate",
		InterruptID: "int_1",
		ExpiresAt:   now.Add(time.Minute),
		Intent:      interrupttoken.Resolve,
	}
)

func sign(t testing.TB, ts *interrupttoken.Tokens, c interrupttoken.Claims) string {
	t.Helper()
	text, err := ts.Sign(c)
	require.NoError(t, err)
	return text
}

// OpenWOP host contract §6.5, format.
func TestSign_HasTheMembersOfTheContract(t *testing.T) {
	t.Parallel()
	head, _, _ := strings.Cut(sign(t, tokens(t, both), claims), ".")
	body, err := base64.RawURLEncoding.DecodeString(head)
	require.NoError(t, err)
	var members map[string]any
	require.NoError(t, json.Unmarshal(body, &members))
	require.NotEmpty(t, members["t"])
	delete(members, "t")
	require.Equal(t, map[string]any{
		"runId":       "run_1",
		"nodeId":      "gate",
		"interruptId": "int_1",
		"expiresAt":   "2026-05-01T12:01:00.000Z",
		"intent":      "resolve",
		"kid":         2.0,
	}, members)
}

func TestSign_HidesTheTenant(t *testing.T) {
	t.Parallel()
	ts := tokens(t, both)
	text := sign(t, ts, claims)
	head, _, _ := strings.Cut(text, ".")
	body, err := base64.RawURLEncoding.DecodeString(head)
	require.NoError(t, err)
	var members struct {
		T []byte `json:"t"`
	}
	require.NoError(t, json.Unmarshal(body, &members))
	for _, seen := range []string{text, string(body), string(members.T)} {
		require.NotContains(t, seen, claims.Tenant)
	}
	other := claims
	other.InterruptID = "int_2"
	head, _, _ = strings.Cut(sign(t, ts, other), ".")
	require.NotContains(t, head, base64.StdEncoding.EncodeToString(members.T), "two interrupts of a tenant do not look alike")
}

func TestSign_ReplicasAgree(t *testing.T) {
	t.Parallel()
	one, two := tokens(t, both), tokens(t, token.Keys{2: key('b'), 1: key('a')})
	text := sign(t, one, claims)
	require.Equal(t, text, sign(t, two, claims))
	got, err := two.Open(text, interrupttoken.Resolve, now)
	require.NoError(t, err)
	require.Equal(t, claims, got)
}

func TestSign_RejectsInvalidClaims(t *testing.T) {
	t.Parallel()
	long := claims
	long.NodeID = strings.Repeat("n", 3000)
	_, err := tokens(t, both).Sign(long)
	require.ErrorContains(t, err, "longer than 4096 bytes")
}

func TestNew_NeedsAKey(t *testing.T) {
	t.Parallel()
	for _, keys := range []token.Keys{nil, {1: key('a')[1:]}} {
		_, err := interrupttoken.New(keys)
		require.ErrorContains(t, err, "interrupt tokens: ")
	}
}

// OpenWOP host contract §6.5, verify: several live secrets during rotation.
func TestOpen_AcceptsTokensOfAReplacedKey(t *testing.T) {
	t.Parallel()
	old := sign(t, tokens(t, token.Keys{1: key('a')}), claims)
	got, err := tokens(t, both).Open(old, interrupttoken.Resolve, now)
	require.NoError(t, err)
	require.Equal(t, claims, got)
	_, err = tokens(t, token.Keys{2: key('b')}).Open(old, interrupttoken.Resolve, now)
	require.Equal(t, fault.InterruptNotFound, fault.CodeOf(err), "the old key is gone")
	_, err = tokens(t, token.Keys{2: key('a')}).Open(old, interrupttoken.Resolve, now)
	require.Equal(t, fault.InterruptNotFound, fault.CodeOf(err), "the right key under another id")
}

// OpenWOP host contract §6.5: intent, lifetime.
func TestOpen_AllowsWhatTheTokenIsFor(t *testing.T) {
	t.Parallel()
	ts := tokens(t, both)
	inspect := claims
	inspect.Intent = interrupttoken.Inspect
	odd := claims
	odd.Intent = "own"
	for name, tc := range map[string]struct {
		claims interrupttoken.Claims
		use    interrupttoken.Intent
		at     time.Time
		code   fault.Code
	}{
		"resolve":                       {claims, interrupttoken.Resolve, now, ""},
		"who may resolve may look":      {claims, interrupttoken.Inspect, now, ""},
		"inspect":                       {inspect, interrupttoken.Inspect, now, ""},
		"inspect is not enough":         {inspect, interrupttoken.Resolve, now, fault.Forbidden},
		"an invalid intent":             {odd, interrupttoken.Inspect, now, fault.Forbidden},
		"the last moment":               {claims, interrupttoken.Resolve, claims.ExpiresAt.Add(-time.Millisecond), ""},
		"over":                          {claims, interrupttoken.Resolve, claims.ExpiresAt, fault.InterruptExpired},
		"over, and was not enough ever": {inspect, interrupttoken.Resolve, claims.ExpiresAt, fault.InterruptExpired},
	} {
		got, err := ts.Open(sign(t, ts, tc.claims), tc.use, tc.at)
		require.Equal(t, tc.code, fault.CodeOf(err), name)
		if tc.code == "" {
			require.Equal(t, tc.claims, got, name)
		} else {
			require.Zero(t, got, name)
		}
	}
}

// The error does not reveal why a token is invalid.
func TestOpen_ReturnsTheSameErrorForEveryForgery(t *testing.T) {
	t.Parallel()
	ts := tokens(t, both)
	assets, err := both.For("waybill asset urls")
	require.NoError(t, err)
	body := []byte(`{"runId":"run_1","nodeId":"gate","interruptId":"int_1","expiresAt":"2027-05-01T12:00:00.000Z","intent":"resolve","kid":2,"t":""}`)
	var said []string
	for name, text := range map[string]string{
		"garbage":             "garbage",
		"empty":               "",
		"another host":        sign(t, tokens(t, token.Keys{2: key('x')}), claims),
		"another purpose":     assets.Sign(body),
		"the keys themselves": both.Sign(body),
		"no hash":             base64.RawURLEncoding.EncodeToString(body) + ".",
	} {
		_, err := ts.Open(text, interrupttoken.Resolve, now)
		require.Equal(t, fault.InterruptNotFound, fault.CodeOf(err), name)
		said = append(said, err.Error())
	}
	for _, s := range said {
		require.Equal(t, said[0], s)
	}
}

func TestExpiry_IsNeverPastTheInterrupts(t *testing.T) {
	t.Parallel()
	require.Equal(t, now.Add(30*time.Minute), interrupttoken.Expiry(now, interrupttoken.Lifetime, time.Time{}, false))
	require.Equal(t, now.Add(30*time.Minute), interrupttoken.Expiry(now, interrupttoken.Lifetime, now.Add(time.Hour), true))
	require.Equal(t, now.Add(time.Minute), interrupttoken.Expiry(now, interrupttoken.Lifetime, now.Add(time.Minute), true))
}

// 100,000 forgeries of good tokens: other bits, parts, keys, claims. None opens, not
// even as an expired one.
func TestOpen_AcceptsNoForgery(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // G404: the same forgeries each time
	ts, stranger := tokens(t, both), tokens(t, token.Keys{1: key('x'), 2: key('y')})
	second := claims
	second.RunID, second.Tenant, second.Intent = "run_2", "other", interrupttoken.Inspect
	one, two, theirs := sign(t, ts, claims), sign(t, ts, second), sign(t, stranger, claims)
	head, tail, _ := strings.Cut(one, ".")
	head2, tail2, _ := strings.Cut(two, ".")
	body, err := base64.RawURLEncoding.DecodeString(head)
	require.NoError(t, err)
	swap := func(from, to string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(body), from, to, 1))) + "."
	}
	_, theirTail, _ := strings.Cut(theirs, ".")
	fixed := []string{
		head + "." + tail2,
		head2 + "." + tail,
		tail + "." + head,
		head + "." + theirTail,
		theirs,
		head + ".",
		"." + tail,
		one + "." + tail,
		swap(`"kid":2`, `"kid":1`) + tail,
		swap(`"kid":2`, `"kid":3`) + tail,
		swap(`"kid":2`, `"kid":0`), swap(`"kid":2`, `"alg":"none","kid":2`),
		swap("run_1", "run_2") + tail,
		swap("2026", "2036") + tail,
		swap("int_1", "int_2") + tail,
	}
	forge := []func() string{
		func() string { b := []byte(one); b[r.IntN(len(b))] ^= 1 << r.IntN(8); return string(b) },
		func() string { return one[:r.IntN(len(one))] },
		func() string { return one[1+r.IntN(len(one)-1):] },
		func() string { i := r.IntN(len(one)); return one[:i] + string("AZaz09-_."[r.IntN(9)]) + one[i:] },
		func() string { i, j := r.IntN(len(one)), r.IntN(len(two)); return one[:i] + two[j:] },
		func() string { return fixed[r.IntN(len(fixed))] },
	}
	for i := range 100_000 {
		text := forge[i%len(forge)]()
		if text == one || text == two {
			continue
		}
		if _, err := ts.Open(text, interrupttoken.Inspect, now); fault.CodeOf(err) != fault.InterruptNotFound {
			t.Fatalf("%q: %v", text, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	ts, err := interrupttoken.New(both)
	if err != nil {
		f.Fatal(err)
	}
	text, err := ts.Sign(claims)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add("eyJraWQiOjJ9.AAAA")
	f.Add(".")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ts.Open(text, interrupttoken.Inspect, now)
		if err != nil {
			require.Zero(t, c)
			return
		}
		again, err := tokens(t, token.Keys{1: key('a')}).Sign(c)
		require.NoError(t, err)
		newest := sign(t, ts, c)
		require.Contains(t, []string{again, newest}, text, "what opens is what was signed")
	})
}
