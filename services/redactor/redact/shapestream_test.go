package redact_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/redactor/redact"
)

// longestHeld limits the bytes that a stream holds back: what one candidate may need, with
// a margin. See maxOpen.
const longestHeld = 18 << 10

// streamed returns the result of a stream of a text in pieces; next returns their sizes.
func streamed(t testing.TB, text string, next func() int) (redacted string, replaced int) {
	t.Helper()
	st := redact.Compile(nil).With(redact.DefaultShapes()).Stream()
	var all strings.Builder
	count := 0
	for text != "" {
		n := min(max(next(), 1), len(text))
		out, k := st.Write(text[:n])
		all.WriteString(out)
		count, text = count+k, text[n:]
		require.LessOrEqual(t, st.Held(), longestHeld)
	}
	out, k := st.Close()
	all.WriteString(out)
	require.Zero(t, st.Held())
	return all.String(), count + k
}

func every(n int) func() int { return func() int { return n } }

// random returns n bytes of key material, the same in every run.
func random(alphabet string, n int) string {
	r := rand.New(rand.NewPCG(uint64(n), 7)) //nolint:gosec // G404: reproducible on purpose
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

const urlSafe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// block returns a key block with that many lines and line ends.
func block(lines int, end string) string {
	b := "-----BEGIN RSA PRIVATE KEY-----" + end
	for i := range lines {
		b += random(urlSafe[:62], 64+i)[:64] + end
	}
	return b + "-----END RSA PRIVATE KEY-----"
}

func TestShapeStream_ShowsNoPartOfALongSecret(t *testing.T) {
	t.Parallel()
	signature := random(urlSafe, 86)
	for name, tc := range map[string]struct{ text, secret string }{
		"a signed token of several KiB": {
			"token: eyJ" + random(urlSafe, 40) + ".eyJ" + random(urlSafe, 6000) + "." + signature,
			signature,
		},
		"one of many KiB": {
			"eyJ" + random(urlSafe, 40) + ".eyJ" + random(urlSafe, 40_000) + "." + signature,
			signature,
		},
		"one that is cut off": {"eyJ" + random(urlSafe, 40) + ".eyJ" + random(urlSafe, 90), random(urlSafe, 90)[50:]},
		"a key across the line limit": {
			strings.Repeat("the secret of ", 72) + "ghp_" + random(urlSafe[:62], 36) + " is out",
			random(urlSafe[:62], 36),
		},
		"an escaped block":      {block(40, `\n`), random(urlSafe[:62], 80)[:64]},
		"a block escaped twice": {block(40, `\\n`), random(urlSafe[:62], 80)[:64]},
		"a large block":         {block(800, "\n"), random(urlSafe[:62], 864-2)[:64]},
		"an endless key":        {"sk-proj-" + random(urlSafe, 40_000), random(urlSafe, 40_000)[39_000:]},
		"an endless password":   {"password=" + random(urlSafe, 40_000), random(urlSafe, 40_000)[39_000:]},
		"an endless bearer":     {"Authorization: Bearer " + random(urlSafe, 40_000), random(urlSafe, 40_000)[39_000:]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, count := redact.DefaultShapes().Replace(tc.text)
			require.NotContains(t, want, tc.secret)
			require.Positive(t, count)
			for _, size := range []int{1, 7, 16, 1000, 20_000} {
				got, n := streamed(t, tc.text, every(size))
				require.Equal(t, want, got, "pieces of %d bytes", size)
				require.Equal(t, count, n)
			}
		})
	}
}

// Every rule, cut at every position, alone and in a text.
func TestShapeStream_EqualsTheWholeText(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	seen := map[string]int{}
	for _, l := range labelled(t) {
		if seen[l.Rule]++; seen[l.Rule] > 2 && l.Rule != "" || seen[l.Rule] > 40 {
			continue
		}
		for _, text := range []string{l.Text, "Grüße. " + l.Text + "\nand [REDACTED:x] so on.\n" + l.Text} {
			want, count := redact.DefaultShapes().Replace(text)
			for cut := 1; cut < len(text); cut++ {
				first := true
				got, n := streamed(t, text, func() int {
					if first {
						first = false
						return cut
					}
					return len(text)
				})
				require.Equal(t, want, got, "%s cut at %d", l.Rule, cut)
				require.Equal(t, count, n)
			}
			for size := 1; size < 12; size++ {
				got, n := streamed(t, text, every(size))
				require.Equal(t, want, got, "%s in pieces of %d", l.Rule, size)
				require.Equal(t, count, n)
			}
		}
	}
}

// Text that a stream has emitted is never redacted later.
func TestShapeStream_NeverEmitsTextThatItLaterRedacts(t *testing.T) {
	t.Parallel()
	for _, l := range labelled(t) {
		if l.Rule == "" || len(l.Text) > 400 {
			continue
		}
		want, _ := redact.DefaultShapes().Replace(l.Text)
		st := redact.Compile(nil).With(redact.DefaultShapes()).Stream()
		shown := ""
		for i := range len(l.Text) {
			out, _ := st.Write(l.Text[i : i+1])
			shown += out
			require.True(t, strings.HasPrefix(want, shown), "%q is no beginning of %q", shown, want)
		}
	}
}

// fragments are parts of hostile texts: starts and ends of all shapes.
var fragments = []string{
	"password", "pwd=", "token", ":", "=", " ", "\n", `"`, `\"`, `\`, "'", "[REDACTED:", "]",
	"[REDACTED:x]", "[REDACTED]", "-----BEGIN ", "RSA ", "PRIVATE KEY", "-----",
	"-----END ", "://", "u:", "@", "@host", "eyJ", ".eyJ", ".", "sk-", "sk-ant-", "ghp_", "xoxb-",
	"AKIA", "Bearer ", "Authorization: ", "secret_key", "api-key", "{", "}", ",", ";",
	"hooks.slack.com/services/", "AccountKey=", "é", "\xc3", "\xff", "aB3dE5gH7jK9",
	"MIIEvQIBADANBgkqhkiG9w0BAQEF", "==", "Proc-Type: 4,ENCRYPTED", `\n`, "<password>", "</",
	"--password ", "%3D",
	"hunter22", "process.env.", "run_06gz", "0123456789abcdef0123456789ABCDEF", "http", "  \t", ">",
	"&", "(", ")",
}

func TestShapeStream_EqualsTheWholeTextForHostileTexts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // G404: reproducible on purpose
	for range 6000 {
		var b strings.Builder
		for range 1 + r.IntN(40) {
			f := fragments[r.IntN(len(fragments))]
			b.WriteString(f)
			if r.IntN(40) == 0 {
				b.WriteString(strings.Repeat(f, r.IntN(120)))
			}
		}
		text := b.String()
		want, count := redact.DefaultShapes().Replace(text)
		got, n := streamed(t, text, func() int { return 1 + r.IntN(1+r.IntN(60)) })
		require.Equal(t, want, got, "%q", text)
		require.Equal(t, count, n, "%q", text)
	}
}

func FuzzShapeStream(f *testing.F) {
	for _, l := range labelled(f)[:40] {
		f.Add(l.Text, []byte{3, 1, 9})
	}
	f.Add(block(3, `\n`), []byte{16})
	f.Add("password=[REDACTED:x]hunter22x [REDACTED:ghp_", []byte{1})
	f.Fuzz(func(t *testing.T, text string, cuts []byte) {
		want, count := redact.DefaultShapes().Replace(text)
		i := 0
		got, n := streamed(t, text, func() int {
			if len(cuts) == 0 {
				return 1
			}
			i++
			return int(cuts[i%len(cuts)])
		})
		if got != want || n != count {
			t.Fatalf("%q\nin pieces: %q, %d\nas a whole: %q, %d", text, got, n, want, count)
		}
	})
}

func TestShapes_TreatMarkersAsOpaque(t *testing.T) {
	t.Parallel()
	key := "ghp_" + random(urlSafe[:62], 36)
	for name, tc := range map[string]struct {
		in, want string
		count    int
	}{
		"an id that looks like a key":   {"[REDACTED:sk-proj-" + random(urlSafe[:62], 40) + "]", "", 0},
		"an id that is an assignment":   {"[REDACTED:token=aB3dE5gH7jK9mN]", "", 0},
		"a marker without an id":        {"password: [REDACTED]", "", 0},
		"a value that is a marker":      {"password: [REDACTED:db-password-of-the-shop]", "", 0},
		"a secret right after a marker": {"[REDACTED:x]" + key, "[REDACTED:x][REDACTED:shape.github-token]", 1},
		"a secret right before one":     {key + "[REDACTED:x]", "[REDACTED:shape.github-token][REDACTED:x]", 1},
		"a URL password with a marker": {
			"db://u:hunter[REDACTED:x]22b@host/",
			"db://u:[REDACTED:shape.url-password][REDACTED:x][REDACTED:shape.url-password]@host/", 2,
		},
		"a password behind a marker": {
			"password=[REDACTED:x]hunter22x", "password=[REDACTED:x][REDACTED:shape.assignment]", 1,
		},
		"no marker for want of an end": {"[REDACTED:" + key, "[REDACTED:[REDACTED:shape.github-token]", 1},
		"no marker for its length": {
			"[REDACTED:" + strings.Repeat("x", 129) + " " + key + "]",
			"[REDACTED:" + strings.Repeat("x", 129) + " [REDACTED:shape.github-token]]",
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.want == "" {
				tc.want = tc.in
			}
			got, n := redact.DefaultShapes().Replace(tc.in)
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.count, n)
			again, n := redact.DefaultShapes().Replace(got)
			require.Equal(t, got, again)
			require.Zero(t, n)
		})
	}
}

func ExampleShapes_Replace() {
	out, n := redact.DefaultShapes().Replace("DB_PASS=hunter22 in .env")
	fmt.Println(out, n)
	// Output: DB_PASS=[REDACTED:shape.assignment] in .env 1
}
