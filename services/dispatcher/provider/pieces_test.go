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
	const line = "The printer is out.\n"
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
		"laughing, growing":              {[]string{"ha", "haha", "hahaha", "!"}, "hahahahahaha!"},
		"laughing, growing, at the end":  {[]string{"ha", "haha", "hahaha"}, "hahahahahaha"},
		"stars":                          {[]string{"*", "**", "***", " bold"}, "****** bold"},
		"digits, growing":                {[]string{"1", "11", "111", "\n", "2"}, "111111\n2"},
		"digits, growing, more":          {[]string{"1", "11", "111", "1111", "11111"}, strings.Repeat("1", 15)},
		"half a repetition":              {[]string{"ha", "haha", "hahah", "."}, "hahahahahah."},
		"steps":                          {[]string{"a", "ab", "abc", ", then z"}, "aababc, then z"},
		"laughing, repeated":             {[]string{"ha", "haha", "haha, she", "haha, she said loudly", "haha, she said loudly."}, "haha, she said loudly."},
		"lines, repeated":                {[]string{line, line + line, line + line + line, line + line + line + "End"}, line + line + line + "End"},
		"two equal lines":                {[]string{line, line}, line + line},
		"two equal lines, then more":     {[]string{line, line, "End"}, line + line + "End"},
		"a document, then a word":        {[]string{doc, doc, " and"}, doc + doc + " and"},
		"all of them, in the middle":     {[]string{"The printer ", "is out of paper.\n", "The printer is out of paper.\n", "Call it."}, "The printer is out of paper.\nThe printer is out of paper.\nCall it."},
		"all of them, twice at the end":  {[]string{"The printer ", "is out of paper.\n", "The printer is out of paper.\n", "The printer is out of paper.\n"}, "The printer is out of paper.\n"},
		"all of them, twice, then more":  {[]string{"The printer ", "is out of paper.\n", "The printer is out of paper.\n", "The printer is out of paper.\n", "!"}, strings.Repeat("The printer is out of paper.\n", 3) + "!"},
		"all of them, many times":        {append([]string{"The printer ", "is out of paper.\n"}, slice("The printer is out of paper.\n", 9)...), strings.Repeat("The printer is out of paper.\n", 10)},
		"lines, growing, long":           {periods(line, 300), strings.Repeat(line, 300)},
		"stars, growing, long":           {periods("*", 300), strings.Repeat("*", 300*301/2)},
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

// periods returns a line once, twice, and so on.
func periods(line string, n int) (out []string) {
	for i := 1; i <= n; i++ {
		out = append(out, strings.Repeat(line, i))
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

// Pieces that are one short word again and again are a text, whatever their sizes and whatever follows.
func TestPieces_OfRepetitionsAreAText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"*", "1", "ha", "no ", "-=-", "\n"}).Draw(t, "unit")
		var pieces []string
		for _, n := range rapid.SliceOfN(rapid.IntRange(1, 9), 1, 100).Draw(t, "sizes") {
			pieces = append(pieces, strings.Repeat(unit, n))
		}
		pieces = append(pieces, rapid.SampledFrom([]string{"", "!", "Call the printer."}).Draw(t, "end"))
		got, err := textOf(t, pieces...)
		require.NoError(t, err)
		require.Equal(t, strings.Join(pieces, ""), got)
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

// A second thought keeps the words that the first one has, too.
func TestPieces_OfASecondThought(t *testing.T) {
	t.Parallel()
	const first = "I must call the printer."
	for name, tc := range map[string]struct {
		second []string
		want   string
	}{
		"longer":            {[]string{first + " Twice."}, first + " Twice."},
		"shorter":           {[]string{"I must"}, "I must"},
		"in pieces":         {[]string{"I", " must", " wait"}, "I must wait"},
		"another":           {[]string{"No."}, "No."},
		"the same, again":   {[]string{first}, ""},
		"repeated so far":   {[]string{"I", "I must not", "I must not wait", "I must not wait."}, "I must not wait."},
		"first in 2 pieces": {[]string{first, first + " Now."}, first + " Now."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var thoughts, text strings.Builder
			c := provider.NewCollector("m", func(d provider.Delta) error {
				thoughts.WriteString(d.Thought)
				text.WriteString(d.Text)
				return nil
			})
			require.NoError(t, c.Add(provider.Delta{Thought: first}))
			require.NoError(t, c.Add(provider.Delta{Text: "Done."}))
			for _, piece := range tc.second {
				require.NoError(t, c.Add(provider.Delta{Thought: piece}))
			}
			_, err := c.Finish(provider.Result{Stop: provider.StopClean}, "stop")
			require.NoError(t, err)
			require.Equal(t, first+tc.want, thoughts.String())
			require.Equal(t, "Done.", text.String())
		})
	}
}

// Pieces that add nothing are counted: a server cannot send them without end.
func TestPieces_ThatAddNothingAreLimited(t *testing.T) {
	t.Parallel()
	var held provider.HeldText
	c := provider.NewCollector("m", nil)
	thoughts := provider.NewCollector("m", nil)
	large := strings.Repeat("The printer is out of paper. ", 100_000)
	for name, add := range map[string]func(string) error{
		"text":      func(s string) error { return c.Add(provider.Delta{Text: s}) },
		"thought":   func(s string) error { return thoughts.Add(provider.Delta{Thought: s}) },
		"held text": func(s string) error { return held.Add(s) },
	} {
		for _, first := range []string{"The printer", "The printer is out", large} {
			require.NoError(t, add(first), name)
		}
		sent := 0
		var err error
		for ; err == nil && sent < 1<<30; sent += len(large) {
			err = add(large)
		}
		e, ok := provider.As(err)
		require.True(t, ok, "%s: %v", name, err)
		require.Equal(t, provider.CodeContentTooLong, e.Code)
		require.False(t, e.Retryable)
		require.Contains(t, e.Message, "576 MiB")
		require.Greater(t, sent, 10*provider.MaxAnswerBytes, name)
	}
	require.Equal(t, len(large), held.Size())
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
