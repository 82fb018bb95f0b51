package provider_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// textOf returns the text that a collector makes of pieces, and checks that it emits the same.
func textOf(t require.TestingT, pieces ...string) (string, error) {
	var emitted strings.Builder
	c := provider.NewCollector("m", func(d provider.Delta) error {
		emitted.WriteString(d.Text)
		return nil
	})
	for _, p := range pieces {
		if err := c.Add(provider.Delta{Text: p}); err != nil {
			return "", err
		}
	}
	res, err := c.Finish(provider.Result{Stop: provider.StopClean}, "stop")
	require.NoError(t, err)
	require.Equal(t, res.Text, emitted.String())
	return res.Text, nil
}

// A server that repeats all text so far in each piece is read like one that does not.
func TestPieces_OfServersThatRepeatTheText(t *testing.T) {
	t.Parallel()
	const doc = `{"title":"Call the printer","urgent":true}`
	for name, tc := range map[string]struct {
		pieces []string
		want   string
	}{
		"new pieces":                     {[]string{`{"title":`, `"Call the printer",`, `"urgent":true}`}, doc},
		"repeated":                       {[]string{`{"title":`, `{"title":"Call the printer",`, doc}, doc},
		"repeated, from one letter":      {[]string{`{`, `{"title":"Call`, `{"title":"Call the printer",`, doc}, doc},
		"repeated, the end twice":        {[]string{`{"title":`, `{"title":"Call the printer",`, doc, doc}, doc},
		"repeated, each twice":           {[]string{`{"title":`, `{"title":`, `{"title":"Call the`, `{"title":"Call the`, doc, doc}, doc},
		"repeated, empty pieces":         {[]string{"", `{"title":`, "", `{"title":"Call the printer",`, doc, ""}, doc},
		"repeated, an older state":       {[]string{`{"title":`, `{"title":"Call the printer",`, doc, `{"title":`}, doc},
		"two pieces, the second all":     {[]string{`{"title":"Call the`, doc}, doc},
		"two pieces, from two letters":   {[]string{`{"`, doc}, doc},
		"the same piece twice":           {[]string{doc, doc}, doc},
		"new pieces, then all of them":   {[]string{`{"title":`, `"Call the printer",`, `"urgent":true}`, doc}, doc},
		"short, repeated":                {[]string{"The", "The answer", "The answer is", "The answer is 42"}, "The answer is 42"},
		"digits, repeated":               {[]string{"4", "42", "421", "4217"}, "4217"},
		"a character comes later":        {[]string{"Caf\ufffd", "Café", "Café au", "Café au lait"}, "Café au lait"},
		"a character in four bytes":      {[]string{"Call", "Call \ufffd", "Call \ufffd", "Call 😀", "Call 😀!"}, "Call 😀!"},
		"a replacement that stays":       {[]string{"Caf\ufffd", "Caf\ufffd is", "Caf\ufffd is closed"}, "Caf\ufffd is closed"},
		"a replacement at the end":       {[]string{"The printer", "The printer in the caf", "The printer in the caf\ufffd"}, "The printer in the caf\ufffd"},
		"a replacement in new pieces":    {[]string{"Caf\ufffd", " is", " closed"}, "Caf\ufffd is closed"},
		"laughing":                       {[]string{"ha", "ha", "ha", "ha!"}, "hahahaha!"},
		"two equal words":                {[]string{"bye", "bye"}, "byebye"},
		"a longer second word":           {[]string{"ha", "haha"}, "hahaha"},
		"dashes":                         {append(slice("----", 200), "|"), strings.Repeat("-", 800) + "|"},
		"a line many times":              {slice("flood-flood-flood-", 5), strings.Repeat("flood-", 15)},
		"dashes alone":                   {slice("----", 9), strings.Repeat("-", 36)},
		"indents":                        {[]string{"\n", "\n\n", "x"}, "\n\n\nx"},
		"a word that returns":            {[]string{"no", ", ", "no, ", "no"}, "no, no, no"},
		"a list that repeats itself":     {[]string{"- one\n", "- two\n", "- one\n"}, "- one\n- two\n- one\n"},
		"one piece":                      {[]string{doc}, doc},
		"no piece":                       {nil, ""},
		"repeated, two documents":        {[]string{doc + "\n", doc + "\n" + doc, doc + "\n" + doc + "\n"}, doc + "\n" + doc + "\n"},
		"new pieces that begin alike":    {[]string{"ab", "abX", "c"}, "ababXc"},
		"repeated, long":                 {growing(strings.Repeat("The printer in room 12 is out of paper. ", 500), 37), strings.Repeat("The printer in room 12 is out of paper. ", 500)},
		"repeated, each one byte longer": {growing(doc, 1), doc},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := textOf(t, tc.pieces...)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

func slice(piece string, n int) (out []string) {
	for range n {
		out = append(out, piece)
	}
	return out
}

// growing returns the beginnings of a text, each n bytes longer.
func growing(text string, n int) (out []string) {
	for end := n; end < len(text); end += n {
		out = append(out, text[:end])
	}
	return append(out, text)
}

// A server that repeats its text must not change it: which of the texts would be the answer?
func TestPieces_ThatContradictEachOtherAreAnError(t *testing.T) {
	t.Parallel()
	_, err := textOf(t, "The answer", "The answer is", "The answer is 42", "No, it is 43")
	e, ok := provider.As(err)
	require.True(t, ok, err)
	require.Equal(t, provider.CodeUnavailable, e.Code)
	require.True(t, e.Retryable)
	require.Contains(t, e.Message, "repeats its text")
	require.NotContains(t, e.Message, "43")
}

// However a text is cut into pieces, new or repeated, it is the same text.
func TestPieces_AreTheTextHoweverItIsCut(t *testing.T) {
	t.Parallel()
	const text = `{"title":"Call the printer – today 😀","items":["a","a","aa"],"urgent":true}`
	rapid.Check(t, func(t *rapid.T) {
		var fresh, repeated []string
		for begin := 0; begin < len(text); {
			end := min(len(text), begin+rapid.IntRange(1, 20).Draw(t, "size"))
			fresh, repeated = append(fresh, text[begin:end]), append(repeated, text[:end])
			begin = end
		}
		got, err := textOf(t, fresh...)
		require.NoError(t, err)
		require.Equal(t, text, got)
		got, err = textOf(t, repeated...)
		require.NoError(t, err)
		require.Equal(t, text, got)
	})
}

// Thoughts are read like text, and precede it. A further thought may be another one.
func TestPieces_OfThoughts(t *testing.T) {
	t.Parallel()
	var got []string
	c := provider.NewCollector("m", func(d provider.Delta) error {
		got = append(got, d.Thought+"|"+d.Text)
		return nil
	})
	for _, d := range []provider.Delta{
		{Thought: "The"},
		{Thought: "The printer"},
		{Thought: "The printer is"},
		{Thought: "The printer is", Text: "Call"},
		{Thought: "Another one"},
		{Text: " it"},
	} {
		require.NoError(t, c.Add(d))
	}
	res, err := c.Finish(provider.Result{Stop: provider.StopClean}, "stop")
	require.NoError(t, err)
	require.Equal(t, "Call it", res.Text)
	require.Equal(t, []string{"The|", " printer is|", "|Call", "Another one|", "| it", "|"}, got)
}

// Tokens of the host's own providers are the text as they are.
func TestPieces_OfTokensStayAsTheyAre(t *testing.T) {
	t.Parallel()
	c := provider.NewTokenCollector("m", nil)
	for _, token := range []string{"1", "11", "111", "1111"} {
		require.NoError(t, c.Add(provider.Delta{Text: token}))
	}
	res, err := c.Finish(provider.Result{Stop: provider.StopClean}, "stop")
	require.NoError(t, err)
	require.Equal(t, "1111111111", res.Text)
}
