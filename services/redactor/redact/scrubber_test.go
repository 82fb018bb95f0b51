package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/services/redactor/redact"
)

func secret(id, value string) redact.Secret { return redact.Secret{ID: id, Value: redact.Value(value)} }

func TestText_ReplacesEveryOccurrence(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{
		secret("a", "alpha-key-0001"), secret("b", "beta-key-0002"), secret("short", "1234567"),
		secret("outer", "prefix-alpha-key-0001-suffix"), secret("run", "aaaaaaaa"),
	})
	tests := map[string]struct {
		in, want string
		count    int
	}{
		"none":                    {"nothing here", "nothing here", 0},
		"empty":                   {"", "", 0},
		"whole":                   {"alpha-key-0001", "[REDACTED:a]", 1},
		"in the middle":           {"x alpha-key-0001 y", "x [REDACTED:a] y", 1},
		"twice counts two":        {"alpha-key-0001 alpha-key-0001", "[REDACTED:a] [REDACTED:a]", 2},
		"touching":                {"alpha-key-0001beta-key-0002", "[REDACTED:a][REDACTED:b]", 2},
		"below eight bytes stays": {"1234567", "1234567", 0},
		// OpenWOP envelope contract §26 case 13.
		"longest first, no remnant": {"<prefix-alpha-key-0001-suffix>", "<[REDACTED:outer]>", 1},
		"inner one alone":           {"prefix-alpha-key-0001", "prefix-[REDACTED:a]", 1},
		"broken off, then real": {
			"prefix-alpha-key-prefix-alpha-key-0001-suffix", "prefix-alpha-key-[REDACTED:outer]", 1,
		},
		"overlapping itself":       {strings.Repeat("a", 16), "[REDACTED:run][REDACTED:run]", 2},
		"no remnant of overlaps":   {strings.Repeat("a", 20), "[REDACTED:run][REDACTED:run]", 2},
		"marker is kept":           {"[REDACTED:a]", "[REDACTED:a]", 0},
		"marker of another host":   {"[REDACTED:their-key]", "[REDACTED:their-key]", 0},
		"marker next to a secret":  {"[REDACTED:a]alpha-key-0001", "[REDACTED:a][REDACTED:a]", 1},
		"secret in a false marker": {"[REDACTED:alpha-key-0001]", "[REDACTED:[REDACTED:a]]", 1},
		"reference":                {"use secret:outer now", "use [REDACTED:outer] now", 1},
		"beyond ASCII around":      {"grüße alpha-key-0001 漢字", "grüße [REDACTED:a] 漢字", 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, n := s.Text(tc.in)
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.count, n)
		})
	}
}

func TestText_LeavesNoRemnantOfPartlyOverlappingSecrets(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("a", "abcdefgh12"), secret("b", "h12xxxxxyyyyyyyy")})
	got, n := s.Text("<abcdefgh12xxxxxyyyyyyyy>")
	require.Equal(t, "<[REDACTED:a]>", got)
	require.Equal(t, 1, n)
}

func TestText_FindsEncodedForms(t *testing.T) {
	t.Parallel()
	const value = `s3cr"t/vålue+with\stuff?`
	s := redact.Compile([]redact.Secret{secret("k", value)})
	js, err := json.Marshal(value)
	require.NoError(t, err)
	ascii := strings.ReplaceAll(string(js), "å", `\u00e5`)
	forms := map[string]string{
		"plain":              value,
		"hex":                hex.EncodeToString([]byte(value)),
		"upper hex":          strings.ToUpper(hex.EncodeToString([]byte(value))),
		"query":              url.QueryEscape(value),
		"path":               url.PathEscape(value),
		"lower percent":      strings.ToLower(url.QueryEscape(value)),
		"JSON":               string(js),
		"ASCII JSON":         ascii,
		"slash-escaped JSON": strings.ReplaceAll(string(js), "/", `\/`),
	}
	for name, form := range forms {
		if name == "lower percent" { // only the digits of escapes are lower case there
			form = lowerDigits(url.QueryEscape(value))
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, n := s.Text("<" + form + ">")
			require.Equal(t, 1, n, form)
			require.Contains(t, got, "[REDACTED:k]")
			require.NotContains(t, got, form)
		})
	}
	for before := range 6 {
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
			text := enc.EncodeToString([]byte(strings.Repeat("x", before) + value + "tail"))
			got, n := s.Text(text)
			require.Equal(t, 1, n, "%d bytes before", before)
			require.Contains(t, got, "[REDACTED:k]")
		}
	}
}

func lowerDigits(s string) string {
	for _, e := range []string{"%22", "%2F", "%C3%A5", "%2B", "%5C", "%3F"} {
		s = strings.ReplaceAll(s, e, strings.ToLower(e))
	}
	return s
}

func TestCompile_WithholdsIDsThatLeakAnotherSecret(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("id-of-hunter2-hunter2", "first-value-1"), secret("b", "hunter2-hunter2")})
	got, _ := s.Text("first-value-1")
	require.Equal(t, "[REDACTED:withheld]", got)
	got, _ = s.Text("[REDACTED:id-of-hunter2-hunter2]")
	require.Equal(t, "[REDACTED:withheld]", got)
}

func TestCompile_ShowsTheFirstIDOfASharedValue(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("near", "shared-value"), secret("far", "shared-value")})
	got, _ := s.Text("shared-value")
	require.Equal(t, "[REDACTED:near]", got)
}

func TestScrubber_WithoutSecretsPassesEverything(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*redact.Scrubber{
		"nil": nil, "empty": redact.Compile(nil), "only short": redact.Compile([]redact.Secret{secret("x", "short")}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.False(t, s.IsActive())
			got, n := s.Text("anything")
			require.Equal(t, "anything", got)
			require.Zero(t, n)
			st := s.Stream()
			got, _ = st.Write("piece")
			rest, _ := st.Close()
			require.Equal(t, "piece", got+rest)
			require.Zero(t, st.Held())
		})
	}
}

func TestText_NeverProducesInvalidUTF8(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("bin", "\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xff")})
	got, n := s.Text(strings.Repeat("ö", 12))
	require.Zero(t, n)
	require.True(t, utf8.ValidString(got))
	got, n = s.Text("hex b6c3b6c3b6c3b6c3ff")
	require.Equal(t, 1, n)
	require.Equal(t, "hex [REDACTED:bin]", got)
}

// drawSet makes secrets over a small alphabet with common prefixes, suffixes and infixes, so
// that overlaps are frequent.
func drawSet(t *rapid.T) []redact.Secret {
	values := rapid.SliceOfN(rapid.StringMatching(`[abö]{5,14}`), 1, 5).Draw(t, "values")
	var set []redact.Secret
	for i, v := range values {
		set = append(set, secret(fmt.Sprintf("id%d", i), v))
	}
	return set
}

func drawText(t *rapid.T, set []redact.Secret) string {
	var b strings.Builder
	for range rapid.IntRange(0, 8).Draw(t, "parts") {
		if rapid.Bool().Draw(t, "secret") {
			b.WriteString(rapid.SampledFrom(set).Draw(t, "which").Value.Reveal())
			continue
		}
		b.WriteString(rapid.StringMatching(`[abö x\[\]]{0,6}`).Draw(t, "filler"))
	}
	return b.String()
}

func TestText_LeavesNoValueAndIsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		set := drawSet(t)
		s, in := redact.Compile(set), drawText(t, set)
		out, n := s.Text(in)
		for _, k := range set {
			if len(k.Value) >= redact.MinLength {
				require.NotContains(t, out, k.Value.Reveal())
			}
		}
		require.Equal(t, n, strings.Count(out, "[REDACTED:id"))
		require.True(t, utf8.ValidString(out))
		again, m := s.Text(out)
		require.Equal(t, out, again)
		require.Zero(t, m)
	})
}

func TestStream_EqualsTextAtAnyCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		set := drawSet(t)
		longest := 0
		for _, k := range set {
			longest = max(longest, len(`\u00f6`)*len(k.Value)) // the longest form of a value
		}
		s, in := redact.Compile(set), drawText(t, set)
		want, wantCount := s.Text(in)

		st, out, count, rest := s.Stream(), "", 0, in
		for rest != "" {
			cut := rapid.IntRange(1, len(rest)).Draw(t, "cut") // may lie within a rune
			piece, n := st.Write(rest[:cut])
			require.True(t, utf8.ValidString(piece), "a rune was cut")
			require.LessOrEqual(t, st.Held(), longest)
			out, count, rest = out+piece, count+n, rest[cut:]
		}
		piece, n := st.Close()
		require.Equal(t, want, out+piece)
		require.Equal(t, wantCount, count+n)
	})
}

func TestStream_HoldsBackOnlyPossibleSecrets(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "sk-live-0001")})
	st := s.Stream()
	out, _ := st.Write("hello sk-li")
	require.Equal(t, "hello ", out)
	require.Equal(t, len("sk-li"), st.Held())
	out, _ = st.Write("ght ")
	require.Equal(t, "sk-light ", out)
	require.Zero(t, st.Held())
	out, n := st.Write("sk-live-")
	require.Empty(t, out)
	require.Zero(t, n)
	out, n = st.Write("0001!")
	require.Equal(t, "[REDACTED:k]!", out)
	require.Equal(t, 1, n)
	out, _ = st.Write("sk-live")
	require.Empty(t, out)
	out, _ = st.Close()
	require.Equal(t, "sk-live", out)
}

func FuzzText(f *testing.F) {
	f.Add("alpha-key-0001", "beta-key-0002", "x alpha-key-0001beta-key-0002")
	f.Add("aaaaaaaa", "aaaaaaaaa", strings.Repeat("a", 40))
	f.Fuzz(func(t *testing.T, a, b, text string) {
		set := []redact.Secret{secret("a", a), secret("b", b)}
		s := redact.Compile(set)
		want, n := s.Text(text)
		st := s.Stream()
		var got strings.Builder
		count := 0
		for i := range len(text) {
			piece, m := st.Write(text[i : i+1])
			got.WriteString(piece)
			count += m
		}
		piece, m := st.Close()
		require.Equal(t, want, got.String()+piece)
		require.Equal(t, n, count+m)
	})
}

func manySecrets(n int) []redact.Secret {
	var set []redact.Secret
	for i := range n {
		set = append(set, secret(fmt.Sprintf("key-%d", i), fmt.Sprintf("sk-%08x-%08x-secret-material", i*2654435761, i*40503)))
	}
	return set
}

func BenchmarkText(b *testing.B) {
	s := redact.Compile(manySecrets(50))
	text := strings.Repeat("The quick brown fox asks for the key of the vault. ", 40)
	for name, in := range map[string]string{"miss": text, "hit": text + manySecrets(50)[7].Value.Reveal()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				s.Text(in)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	set := manySecrets(50)
	b.ReportAllocs()
	for b.Loop() {
		redact.Compile(set)
	}
}
