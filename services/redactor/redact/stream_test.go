package redact_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/redactor/redact"
)

// written returns the output of a stream, per piece and in total.
func written(s *redact.Scrubber, pieces ...string) (shown []string, all string, count int) {
	st := s.Stream()
	for _, p := range pieces {
		out, n := st.Write(p)
		shown, all, count = append(shown, out), all+out, count+n
	}
	out, n := st.Close()
	return append(shown, out), all + out, count + n
}

func TestStream_Pieces(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{
		secret("k", "sk-live-0001"), secret("longer", "sk-live-0001-and-more"),
		secret("other", "0001-zzzz-9"), secret("rune", "schlüsßel-x"),
	})
	tests := map[string]struct {
		pieces []string
		shown  []string
		count  int
	}{
		"nothing to hide": {[]string{"a", "b", ""}, []string{"a", "b", "", ""}, 0},
		"no pieces":       {nil, []string{""}, 0},
		"whole in one":    {[]string{"sk-live-0001 "}, []string{"[REDACTED:k] ", ""}, 1},
		"waits for the longer one": {
			[]string{"sk-live-0001", "-and", "-more."},
			[]string{"", "", "[REDACTED:longer].", ""},
			1,
		},
		"longer one does not come": {
			[]string{"sk-live-0001", "-and", "-less."},
			[]string{"", "", "[REDACTED:k]-and-less.", ""},
			1,
		},
		"ends while waiting":        {[]string{"sk-live-0001-an"}, []string{"", "[REDACTED:k]-an"}, 1},
		"ends within a secret":      {[]string{"x sk-live-00"}, []string{"x ", "sk-live-00"}, 0},
		"overlap leaves no remnant": {[]string{"sk-live-", "0001-zz", "zz-9!"}, []string{"", "[REDACTED:k]", "!", ""}, 1},
		"two in a row": {
			[]string{"sk-live-0001sk-", "live-0001."},
			[]string{"[REDACTED:k]", "[REDACTED:k].", ""},
			2,
		},
		"rune cut in two": {[]string{"gr\xc3", "\xbc\xc3", "\x9fe"}, []string{"gr", "ü", "ße", ""}, 0},
		"rune of a secret cut": {
			[]string{"schl\xc3", "\xbcs\xc3", "\x9fel-x"},
			[]string{"", "", "[REDACTED:rune]", ""},
			1,
		},
		"rune of a near miss":        {[]string{"schl\xc3", "\xa4fe"}, []string{"", "schläfe", ""}, 0},
		"lone bytes do not stay":     {[]string{"\x80\x80\x80\x80\x80", "a"}, []string{"\x80\x80\x80\x80\x80", "a", ""}, 0},
		"unfinished rune at the end": {[]string{"a\xe6\xbc"}, []string{"a", "\xe6\xbc"}, 0},
		"marker is kept":             {[]string{"[REDACTED:", "k] and"}, []string{"", "[REDACTED:k] and", ""}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown, all, count := written(s, tc.pieces...)
			require.Equal(t, tc.shown, shown)
			require.Equal(t, tc.count, count)
			whole, n := s.Text(strings.Join(tc.pieces, ""))
			require.Equal(t, whole, all)
			require.Equal(t, n, count)
		})
	}
}

// Only text that may be a secret is held in memory, however long the text is.
func TestStream_MemoryIsBoundedByTheLongestEncoding(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "sk-live-0001")})
	st := s.Stream()
	for range 2000 {
		st.Write("sk-live-000 sk-liv sk-live-0001 ordinary words ")
		require.LessOrEqual(t, st.Held(), 3*len("sk-live-0001")) // every byte percent-escaped
	}
}

// Streams of one scrubber share only the automata.
func TestStream_StreamsOfOneScrubberAreIndependent(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "sk-live-0001")})
	a, b := s.Stream(), s.Stream()
	out, _ := a.Write("sk-live-")
	require.Empty(t, out)
	out, _ = b.Write("0001")
	require.Equal(t, "0001", out)
	out, n := a.Write("0001")
	require.Equal(t, 1, n)
	require.Equal(t, "[REDACTED:k]", out)
}

func BenchmarkStream(b *testing.B) {
	s := redact.Compile(manySecrets(50))
	pieces := strings.SplitAfter(strings.Repeat("The quick brown fox asks for the key of the vault. ", 40), " ")
	b.ReportAllocs()
	for b.Loop() {
		st := s.Stream()
		for _, p := range pieces {
			st.Write(p)
		}
		st.Close()
	}
}

// What pieces have released is what their text releases as one piece: another redactor can continue
// a stream after the whole text.
func TestStream_ReleasesTheSameForAnySplit(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "sk-live-0001"), secret("other", "0001-zzzz-9")})
	const parts = "sk-live-0001 | sk-li|ve-00|01-zzzz-9| plain words, |AKIAIOSFODNN7|EXAMPLE |password: |hunter22!|\nBearer |abcdefghijklmnop|qrstuvwx.|c2stbGl2ZS0w|MDAx|sk%2Dlive|%2D0001 ü\xc3|\xbc end"
	r := rand.New(rand.NewPCG(7, 11)) //nolint:gosec // G404: a fixed sequence
	all := strings.Split(parts, "|")
	for range 300 {
		st := s.Stream()
		var text, released strings.Builder
		for range 1 + r.IntN(12) {
			piece := all[r.IntN(len(all))]
			if cut := r.IntN(len(piece) + 1); r.IntN(3) == 0 {
				piece = piece[:cut]
			}
			text.WriteString(piece)
			out, _ := st.Write(piece)
			released.WriteString(out)
			whole, _ := s.Stream().Write(text.String())
			require.Equal(t, whole, released.String(), "%q", text.String())
		}
	}
}
