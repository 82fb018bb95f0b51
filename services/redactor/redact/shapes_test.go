package redact_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/redactor/redact"
	"waybill.dev/waybill/services/redactor/redact/corpus"
)

func labelled(t testing.TB) []corpus.Line {
	t.Helper()
	b, err := os.ReadFile("corpus/corpus.jsonl")
	require.NoError(t, err)
	var out []corpus.Line
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l corpus.Line
		require.NoError(t, json.Unmarshal(lines.Bytes(), &l))
		out = append(out, l.Join())
	}
	require.NoError(t, lines.Err())
	return out
}

func TestCorpus_MatchesItsGenerator(t *testing.T) {
	t.Parallel()
	require.Equal(t, corpus.Make(12), labelled(t), "run go generate ./services/redactor/redact/corpus")
}

// The file must not contain text that code hosting services report as a live key.
func TestCorpus_HasNoSecretInOnePiece(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("corpus/corpus.jsonl")
	require.NoError(t, err)
	for _, l := range labelled(t) {
		if l.Secret != "" {
			require.False(t, bytes.Contains(b, []byte(l.Secret)), l.Rule)
		}
	}
	out, _ := redact.DefaultShapes().Replace(string(b)) // the name of the member "secret" makes an assignment of each line
	for _, id := range redact.DefaultShapes().IDs() {
		switch id {
		case "assignment", "url-password", "authorization-header", "bearer-token": // no forge looks for these
		default:
			require.Zero(t, strings.Count(out, "[REDACTED:shape."+id+"]"), id)
		}
	}
}

// Minimum precision and recall on the corpus. It includes texts that the rules are known to
// get wrong.
const (
	leastPrecision = 0.96
	leastRecall    = 0.95
)

// leaks reports whether a part of the secret is left.
func leaks(out, secret string) bool {
	const part = 7
	for i := 0; i+part < len(secret); i++ {
		if strings.Contains(out, secret[i:i+part]) {
			return true
		}
	}
	return strings.Contains(out, secret)
}

func TestShapes_PrecisionAndRecallOnTheCorpus(t *testing.T) {
	t.Parallel()
	shapes := redact.DefaultShapes()
	type score struct{ found, missed, wrong int }
	byRule := map[string]*score{}
	var all score
	for _, l := range labelled(t) {
		out, n := shapes.Replace(l.Text)
		if l.Rule == "" {
			all.wrong += n
			if n > 0 {
				t.Logf("taken for a secret: %q became %q", l.Text, out)
			}
			continue
		}
		s := byRule[l.Rule]
		if s == nil {
			s = &score{}
			byRule[l.Rule] = s
		}
		if leaks(out, l.Secret) {
			t.Logf("not found: %.200q became %.200q", l.Text, out)
			s.missed++
			all.missed++
			continue
		}
		s.found++
		all.found++
		if n > 1 {
			all.wrong += n - 1
		}
	}
	precision := float64(all.found) / float64(all.found+all.wrong)
	recall := float64(all.found) / float64(all.found+all.missed)
	t.Logf("precision %.4f, recall %.4f over %d secrets", precision, recall, all.found+all.missed)
	for _, id := range shapes.IDs() {
		s := byRule[id]
		require.NotNil(t, s, "the corpus has nothing for the rule %s", id)
		r := float64(s.found) / float64(s.found+s.missed)
		t.Logf("  %-28s recall %.3f", id, r)
		require.GreaterOrEqual(t, r, 0.9, id)
	}
	require.GreaterOrEqual(t, precision, leastPrecision)
	require.GreaterOrEqual(t, recall, leastRecall)
}

func TestShapes_KeepMarkers(t *testing.T) {
	t.Parallel()
	shapes := redact.DefaultShapes()
	for _, text := range []string{
		"password: [REDACTED:db-password-of-the-shop]", "[REDACTED:shape.openai-key]",
	} {
		out, n := shapes.Replace(text)
		require.Zero(t, n)
		require.Equal(t, text, out)
	}
	once, n := shapes.Replace("key sk-proj-" + "a8Kd02jfLq91mXz7" + "Qw4RtYbN6vCs3EuP done")
	require.Equal(t, 1, n)
	twice, n := shapes.Replace(once)
	require.Zero(t, n)
	require.Equal(t, once, twice)
}

func TestScrubber_RedactsKnownValuesBeforeShapes(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{{
		ID:    "mine",
		Value: "sk-proj-a8Kd02jfLq91mXz7Qw4RtYbN",
	}}).With(redact.DefaultShapes())
	out, n := s.Text("a sk-proj-a8Kd02jfLq91mXz7Qw4RtYbN b ghp_" + strings.Repeat("a1B2", 9) + " c")
	require.Equal(t, "a [REDACTED:mine] b [REDACTED:shape.github-token] c", out)
	require.Equal(t, 2, n)
	doc, n, err := s.JSON([]byte(`{"k":"ghp_`+strings.Repeat("a1B2", 9)+`","n":12345678901234567890}`), strictjson.Limits{})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.JSONEq(t, `{"k":"[REDACTED:shape.github-token]","n":12345678901234567890}`, string(doc))
	require.Contains(t, string(doc), "12345678901234567890")
}

// A secret is never emitted, wherever the text is cut.
func TestShapes_FindSecretsSplitOverChunks(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for _, l := range labelled(t) {
		if l.Rule == "" || seen[l.Rule] >= 3 {
			continue
		}
		seen[l.Rule]++
		text := "Some prose before it. " + l.Text + "\nand some after it.\n"
		for cut := range len(text) {
			if !utf8.RuneStart(text[cut]) {
				continue
			}
			s := redact.Compile(nil).With(redact.DefaultShapes()).Stream()
			out := ""
			for _, piece := range []string{text[:cut], text[cut:]} {
				shown, _ := s.Write(piece)
				out += shown
			}
			rest, _ := s.Close()
			require.NotContains(t, out+rest, l.Secret, "%s cut at %d", l.Rule, cut)
		}
		s := redact.Compile(nil).With(redact.DefaultShapes()).Stream()
		out := ""
		for i := range len(text) {
			shown, _ := s.Write(text[i : i+1])
			out += shown
			require.NotContains(t, out, l.Secret, "%s, byte by byte", l.Rule)
		}
		rest, _ := s.Close()
		require.NotContains(t, out+rest, l.Secret)
		require.Contains(t, out+rest, "Some prose before it. ")
	}
}

func TestShapes_HoldBackLittleOfPlainProse(t *testing.T) {
	t.Parallel()
	s := redact.Compile(nil).With(redact.DefaultShapes()).Stream()
	for range 200 {
		s.Write("The lamp arrived broken and the box was wet. ")
		require.LessOrEqual(t, s.Held(), 24)
	}
}

func TestShapes_LimitTheHeldText(t *testing.T) {
	t.Parallel()
	for name, piece := range map[string]string{
		"an endless token":        "sk-proj-" + strings.Repeat("a8Kd02jf", 4),
		"an endless block":        "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("a8Kd02jfLq91mXz7\n", 8),
		"an endless line":         "password password password ",
		"an endless line of text": strings.Repeat("é", 50),
	} {
		s := redact.Compile(nil).With(redact.DefaultShapes()).Stream()
		for range 2000 {
			s.Write(piece)
			require.LessOrEqual(t, s.Held(), 17<<10, name)
		}
	}
	// Text that was too long to hold is not emitted later.
	s := redact.Compile(nil).With(redact.DefaultShapes()).Stream()
	out, _ := s.Write("key " + strings.Repeat("ghp_", 1) + strings.Repeat("a1B2", 500))
	more, _ := s.Write(strings.Repeat("c3D4", 50) + " and on")
	rest, _ := s.Close()
	require.NotContains(t, out+more+rest, "a1B2a1B2")
	require.NotContains(t, out+more+rest, "c3D4c3D4")
	require.Contains(t, out+more+rest, "and on")
}

func TestParseShapes_NamesEveryMistake(t *testing.T) {
	t.Parallel()
	_, err := redact.ParseShapes([]byte(`
- {id: a}
- {id: b, words: [xyz], then: '('}
- {id: 'c]', words: [xyz], then: x}
- {id: d, words: [xy], then: '(a)b'}
- {id: e, words: [xyz], reader: none}
- {id: f, words: [xyz], then: '[a-z]+x[a-z]+y[a-z]+z'}
`))
	require.ErrorContains(t, err, "rule 0")
	require.ErrorContains(t, err, "rule b")
	require.ErrorContains(t, err, "rule c]")
	require.ErrorContains(t, err, `rule d: word "xy": must have at least 3 characters`)
	require.ErrorContains(t, err, "rule d: only literal texts and runs")
	require.ErrorContains(t, err, `rule e: unknown reader "none"`)
	require.ErrorContains(t, err, "rule f: may need more than")
	_, err = redact.ParseShapes([]byte("{"))
	require.Error(t, err)
}

func FuzzShapes(f *testing.F) {
	for _, l := range labelled(f)[:60] {
		f.Add(l.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shapes := redact.DefaultShapes()
		out, n := shapes.Replace(text)
		if n == 0 && out != text {
			t.Fatalf("changed without a find: %q", text)
		}
		if utf8.ValidString(text) && !utf8.ValidString(out) {
			t.Fatalf("broke %q into %q", text, out)
		}
	})
}
