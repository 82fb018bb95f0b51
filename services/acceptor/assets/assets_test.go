package assets_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/blob"
	"waybill.dev/waybill/internal/blob/memory"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/assets"
)

const base = "https://host.example/v1/assets"

func key(b byte) []byte { return []byte(strings.Repeat(string(b), 32)) }

func newStore(t testing.TB, blobs blob.Store, keys token.Keys, now *time.Time) *assets.Store {
	t.Helper()
	v, err := assets.New(blobs, keys, func() string { return base }, func() time.Time { return *now })
	require.NoError(t, err)
	return v
}

func at(tenant, run string) accept.Target {
	return accept.Target{Run: subject.Run{Tenant: tenant, WorkflowID: "wf", RunID: run}}
}

var picture = accept.Asset{Data: []byte("picture"), MimeType: "image/png", Name: "lämp.png", Attachment: true}

func textOf(url string) string { return strings.TrimPrefix(url, base+"/") }

func TestSave_IsIdempotentPerEnvelope(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	blobs := memory.New()
	v := newStore(t, blobs, token.Keys{1: key('a')}, &now)
	first, err := v.Save(t.Context(), at("acme", "r"), "c1", picture)
	require.NoError(t, err)
	again, err := newStore(t, blobs, token.Keys{1: key('a')}, &now).Save(t.Context(), at("acme", "r"), "c1", picture)
	require.NoError(t, err)
	require.Equal(t, first, again, "from any process")
	require.Equal(t, 1, blobs.Len())
	for _, other := range []accept.Target{at("beta", "r"), at("acme", "r2")} {
		url, err := v.Save(t.Context(), other, "c1", picture)
		require.NoError(t, err)
		require.NotEqual(t, first, url)
	}
	got, err := v.Load(t.Context(), textOf(first))
	require.NoError(t, err)
	require.Equal(t, picture, got)
}

func TestLoad_AcceptsOnlyItsOwnTokens(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	blobs := memory.New()
	v := newStore(t, blobs, token.Keys{1: key('a')}, &now)
	url, err := v.Save(t.Context(), at("acme", "r"), "c1", picture)
	require.NoError(t, err)
	good := textOf(url)
	body, mac, _ := strings.Cut(good, ".")
	raw, err := base64.RawURLEncoding.DecodeString(body)
	require.NoError(t, err)
	changed := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(raw), "acme", "beta", 1)))
	foreign := newStore(t, blobs, token.Keys{1: key('b')}, &now)
	theirs, err := foreign.Save(t.Context(), at("acme", "r"), "c1", picture)
	require.NoError(t, err)
	for name, bad := range map[string]string{
		"empty":          "",
		"no mac":         body,
		"no body":        "." + mac,
		"another tenant": changed + "." + mac,
		"another key":    textOf(theirs),
		"padded":         body + "=." + mac,
		"longer":         good + "A",
		"shorter":        good[:len(good)-1],
		"huge":           strings.Repeat("A", 5000) + "." + mac,
		"spaces":         " " + good,
	} {
		_, err := v.Load(t.Context(), bad)
		require.Equal(t, fault.NotFound, fault.CodeOf(err), name)
	}
}

func TestLoad_AcceptsTokensOfAReplacedKey(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	blobs := memory.New()
	old, err := newStore(t, blobs, token.Keys{1: key('a')}, &now).Save(t.Context(), at("acme", "r"), "c1", picture)
	require.NoError(t, err)
	both := newStore(t, blobs, token.Keys{1: key('a'), 2: key('b')}, &now)
	_, err = both.Load(t.Context(), textOf(old))
	require.NoError(t, err)
	fresh, err := both.Save(t.Context(), at("acme", "r"), "c1", picture)
	require.NoError(t, err)
	require.NotEqual(t, old, fresh, "signed with the new key")
	_, err = newStore(t, blobs, token.Keys{2: key('b')}, &now).Load(t.Context(), textOf(old))
	require.Equal(t, fault.NotFound, fault.CodeOf(err), "signed with a removed key")
}

func TestSaveUnbound_ExpiresAfterItsTTL(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	v := newStore(t, memory.New(), token.Keys{1: key('a')}, &now)
	short, err := v.SaveUnbound(t.Context(), "acme", picture, time.Minute)
	require.NoError(t, err)
	long, err := v.SaveUnbound(t.Context(), "acme", picture, 0)
	require.NoError(t, err)
	require.NotEqual(t, short, long)
	now = now.Add(59 * time.Second)
	_, err = v.Load(t.Context(), short)
	require.NoError(t, err)
	now = now.Add(time.Second)
	_, err = v.Load(t.Context(), short)
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	_, err = v.Load(t.Context(), long)
	require.NoError(t, err)
}

func TestNew_NeedsAStrongKey(t *testing.T) {
	t.Parallel()
	for _, keys := range []token.Keys{nil, {0: key('a')}, {1: []byte("short")}} {
		_, err := assets.New(memory.New(), keys, func() string { return base }, time.Now)
		require.Error(t, err)
	}
	derived, err := assets.DeriveKey([]byte("host secret"))
	require.NoError(t, err)
	require.Len(t, derived, 32)
	require.NotContains(t, string(derived), "host secret")
}

// down is an unavailable store.
type down struct{}

func (down) Put(context.Context, string, blob.Blob) error { return errors.New("no connection") }
func (down) Get(context.Context, string) (blob.Blob, error) {
	return blob.Blob{}, errors.New("no connection")
}

func (down) Erase(context.Context, string) error { return errors.New("no connection") }

func TestStore_ReportsAnUnavailableStore(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	v := newStore(t, down{}, token.Keys{1: key('a')}, &now)
	_, err := v.Save(t.Context(), at("acme", "r"), "c1", picture)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	url, err := newStore(t, memory.New(), token.Keys{1: key('a')}, &now).Save(t.Context(), at("acme", "r"), "c1", picture)
	require.NoError(t, err)
	_, err = v.Load(t.Context(), textOf(url))
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "not: fault.NotFound")
}

func FuzzToken(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	v := newStore(f, memory.New(), token.Keys{1: key('a')}, &now)
	url, err := v.Save(f.Context(), at("acme", "r"), "c1", picture)
	require.NoError(f, err)
	good := textOf(url)
	f.Add(good)
	f.Add("eyJrIjoxfQ.")
	f.Add("e30." + strings.Repeat("A", 43))
	f.Fuzz(func(t *testing.T, text string) {
		_, err := v.Load(t.Context(), text)
		if (err == nil) != (text == good) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
