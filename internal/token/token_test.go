package token_test

import (
	"encoding/base64"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	signed "waybill.dev/waybill/internal/token"
)

var keys = signed.Keys{1: key('a'), 2: key('b')}

func TestSign_UsesTheNewestKeyAndOlderTokensStayValid(t *testing.T) {
	t.Parallel()
	old := signed.Keys{1: key('a')}.Sign([]byte("p"))
	fresh := keys.Sign([]byte("p"))
	require.NotEqual(t, old, fresh)
	for text, version := range map[string]int{old: 1, fresh: 2} {
		payload, by, ok := keys.Open(text)
		require.True(t, ok)
		require.Equal(t, version, by)
		require.Equal(t, "p", string(payload))
	}
	_, _, ok := signed.Keys{2: key('b')}.Open(old)
	require.False(t, ok, "the old key is gone")
}

// OpenWOP host contract §6.5: no padding, MAC over the encoded payload.
func TestSign_HasTheFormatOfTheContract(t *testing.T) {
	t.Parallel()
	text := signed.Keys{1: key('a')}.Sign([]byte(`{"a":1}`))
	require.Equal(t, "eyJhIjoxfQ.AQwn0mZm9XwVUKUEGpo0mV97bjVmvIXMFp8bip-uBMI", text)
}

func TestOpen_AcceptsOneEncodingOfEachToken(t *testing.T) {
	t.Parallel()
	good := keys.Sign([]byte("payload"))
	head, tail, _ := strings.Cut(good, ".")
	for name, bad := range map[string]string{
		"empty":             "",
		"a dot":             ".",
		"no hash":           head,
		"no payload":        "." + tail,
		"a padded payload":  head + "=." + tail,
		"a padded hash":     good + "=",
		"a longer hash":     good + "A",
		"a shorter hash":    good[:len(good)-1],
		"spaces":            " " + good,
		"a line end":        good + "\n",
		"a line end within": head + ".\n" + tail,
		"a third part":      good + "." + tail,
		"huge":              strings.Repeat("A", signed.MaxLen) + "." + tail,
		"parts swapped":     tail + "." + head,
		"no base64":         "%%%." + tail,
		"another alphabet":  strings.NewReplacer("-", "+", "_", "/").Replace(head) + "+." + tail,
	} {
		_, _, ok := keys.Open(bad)
		require.False(t, ok, name)
	}
	last := strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", good[len(good)-1])
	other := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[last^1]
	_, _, ok := keys.Open(good[:len(good)-1] + string(other))
	require.False(t, ok, "bits that no byte needs")
}

// 100,000 forgeries of each kind; none is accepted.
func TestOpen_TakesNoForgery(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // G404: the same forgeries each time
	one, two := keys.Sign([]byte(`{"kid":2,"runId":"r1","intent":"resolve"}`)), keys.Sign([]byte(`{"kid":2,"runId":"r2","intent":"inspect"}`))
	head1, tail1, _ := strings.Cut(one, ".")
	head2, tail2, _ := strings.Cut(two, ".")
	good := map[string]bool{one: true, two: true}
	encode := base64.RawURLEncoding.EncodeToString
	stranger := signed.Keys{2: key('x')}
	kinds := []func() string{
		func() string { // a bit of the text
			b := []byte(one)
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			return string(b)
		},
		func() string { // a bit of the payload, spelled well
			b, _ := base64.RawURLEncoding.DecodeString(head1)
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			return encode(b) + "." + tail1
		},
		func() string { // a bit of the hash, spelled well
			b, _ := base64.RawURLEncoding.DecodeString(tail1)
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			return head1 + "." + encode(b)
		},
		func() string { return one[:r.IntN(len(one))] },
		func() string { return one[r.IntN(len(one)-1)+1:] },
		func() string { return head1 + "." + tail2 },
		func() string { return head2 + "." + tail1 },
		func() string { return head2[:r.IntN(len(head2))] + head1 + "." + tail1 },
		func() string { return stranger.Sign([]byte(`{"kid":2,"runId":"r1","intent":"resolve"}`)) },
		func() string { // another version than any there is
			return signed.Keys{3 + r.IntN(9): key(byte(r.IntN(97)))}.Sign([]byte(`{"kid":0,"alg":"none"}`))
		},
		func() string { return encode([]byte(`{"alg":"none"}`)) + "." + head1 + "." },
		func() string { return encode([]byte(`{"alg":"none"}`)) + "." },
		func() string { // a hash of nothing but chance
			b := make([]byte, r.IntN(64))
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			return head1 + "." + encode(b)
		},
	}
	for i := range 100_000 {
		text := kinds[i%len(kinds)]()
		if good[text] {
			continue
		}
		if _, _, ok := keys.Open(text); ok {
			t.Fatalf("took %q", text)
		}
	}
}

// No timing side channel: only hmac.Equal compares hashes.
func TestOpen_ComparesHashesInConstantTimeOnly(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "token.go", nil, 0)
	require.NoError(t, err)
	equal := 0
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && n.Sel.Name == "Equal" {
				require.Equal(t, "hmac", pkg.Name)
				equal++
			}
		case *ast.BinaryExpr:
			for _, side := range []ast.Expr{n.X, n.Y} {
				if id, ok := side.(*ast.Ident); ok && (n.Op == token.EQL || n.Op == token.NEQ) {
					require.NotContains(t, []string{"sum", "tail"}, id.Name)
				}
			}
		}
		return true
	})
	require.Equal(t, 1, equal)
}

func FuzzOpen(f *testing.F) {
	good := keys.Sign([]byte("payload"))
	f.Add(good)
	f.Add("." + good)
	f.Add("eyJhbGciOiJub25lIn0.")
	f.Fuzz(func(t *testing.T, text string) {
		payload, version, ok := keys.Open(text)
		if !ok {
			require.Nil(t, payload)
			return
		}
		require.Equal(t, text, signed.Keys{version: keys[version]}.Sign(payload), "what is taken is what was signed")
	})
}
