package sample

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStem_BringsFormsOfAWordTogether(t *testing.T) {
	t.Parallel()
	for _, forms := range [][]string{
		{"invoice", "invoices", "invoiced", "invoicing"},
		{"charge", "charged", "charges", "charging"},
		{"refund", "refunds", "refunded", "refunding"},
		{"bill", "bills", "billing", "billed"},
		{"crash", "crashed", "crashing"},
		{"bug", "bugs"},
		{"price", "prices", "pricing"},
	} {
		for _, form := range forms[1:] {
			require.Equal(t, stem(forms[0]), stem(form), form)
		}
	}
	for _, short := range []string{"red", "bus", "king", "she", "ing"} {
		require.GreaterOrEqual(t, len(stem(short)), 2, short)
	}
	require.NotEqual(t, stem("refund"), stem("refuse"))
}

func TestStems_ReadNamesAsWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                              nil,
		"the of and you":                nil,
		"orderId":                       {"order"},
		"customer_email-address":        {"customer", "email", "addres"},
		"HTTPServer fails, twice!":      {"httpserver", "fail", "twic"},
		"Rechnung über 3 Lizenzen":      {"rechnung", "über", "lizenzen"},
		"{\"type\":\"string\",\"a\":1}": {"typ"},
	} {
		require.Equal(t, want, stems(text), text)
	}
}

func TestSplit_KeepsEveryByteAndCutsAtWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                  nil,
		"hello":             {"hello"},
		"hello, big world!": {"hello", ",", " big", " world", "!"},
		`{"a":1.5}`:         {`{"`, "a", `":`, "1", ".", "5", "}"},
		"extraordinarily":   {"extraord", "inarily"},
		"äöü\n\nß":          {"äöü", "\n\nß"},
		"a  b":              {"a", "  b"},
	} {
		require.Equal(t, want, split(text), text)
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("hello, world")
	f.Add("\xff\xfe broken \x00")
	f.Fuzz(func(t *testing.T, text string) {
		var joined string
		for _, piece := range split(text) {
			require.NotEmpty(t, piece)
			joined += piece
		}
		require.Equal(t, text, joined)
	})
}

func TestRelated_KnowsTopicsByTheirStems(t *testing.T) {
	t.Parallel()
	require.Contains(t, related[stem("billing")], stem("invoice"))
	require.Contains(t, related[stem("technical")], stem("crashes"))
	for label, words := range related {
		require.NotEmpty(t, words, label)
	}
}

func newTestGenerator(subject string) *generator { return newGenerator(true, subject, 1) }

func TestRank_DiscountsWordsThatAllAlternativesHave(t *testing.T) {
	t.Parallel()
	g := newTestGenerator("the dragon eats a ticket")
	ticket := func(label string) *alternative {
		a := newAlternative(label)
		a.about("ticket", weightAbout)
		return a
	}
	scores := g.rank([]*alternative{ticket("knight"), ticket("dragon"), ticket("castle")})
	require.Equal(t, []int{0, weightLabel, 0}, scores)
	require.Equal(t, []int{weightAbout}, g.rank([]*alternative{ticket("knight")}), "nothing is common to one")
}

func TestChoose_TakesANeutralLabelOnlyWhenNothingSpeaksForAny(t *testing.T) {
	t.Parallel()
	list := labels([]any{"shipping", "Other", "billing"}, "")
	require.Equal(t, 1, newTestGenerator("xyzzy").choose(list, place{}))
	require.Equal(t, 2, newTestGenerator("an invoice").choose(list, place{}))
}

func TestLabels_ReadWhatTheDescriptionSaysOfEach(t *testing.T) {
	t.Parallel()
	list := labels([]any{"p1", "p2", nil, 7}, "P1: whole site unusable. p2 = cosmetic glitches")
	require.Equal(t, weightAbout, list[0].words[stem("unusable")])
	require.Zero(t, list[0].words[stem("glitches")])
	require.Equal(t, weightAbout, list[1].words[stem("glitches")])
	require.Zero(t, list[2].words[stem("glitches")])
}
