package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/words"
)

func text(r store.Run, list ...string) store.Text {
	return store.Text{Key: r.Key, CreatedAt: r.CreatedAt, Words: list}
}

func applyTexts(t *testing.T, s store.Store, pos uint64, texts ...store.Text) {
	t.Helper()
	require.NoError(t, s.Apply(t.Context(), store.Batch{Texts: texts, Tail: store.Tail{Pos: pos, Hash: "h"}}))
}

// found lists the runs of a tenant by words.
func found(t *testing.T, s store.Store, q store.Query) []string {
	t.Helper()
	if q.Tenant == "" {
		q.Tenant = "acme"
	}
	if q.Limit == 0 {
		q.Limit = 10
	}
	runs, err := s.List(t.Context(), q)
	require.NoError(t, err)
	return ids(runs)
}

func findsWords(t *testing.T, s store.Store) {
	a, b, c, theirs := row("a", 1), row("b", 2), row("c", 3), row("d", 4)
	c.Status, c.Tags = wire.StatusFailed, []string{"x"}
	theirs.Tenant = "acme-2"
	apply(t, s, 20, []store.Run{a, b, c, theirs})
	applyTexts(t, s, 21, text(a, "refund", "4711", "ärger"), text(b, "refunded"), text(c, "返", "金"), text(theirs, "refund"), text(c, "refund"))
	applyTexts(t, s, 22, text(b, "later"))
	applyTexts(t, s, 22, text(b, "later")) // again
	for words, want := range map[string][]string{
		"refund": {"c", "b", "a"}, "refunded": {"b"}, "ref 47": {"a"}, "refund later": {"b"}, "ärg": {"a"}, "返 金": {"c"}, "und": nil,
		"acme": nil, "lat": {"b"},
	} {
		require.Equal(t, want, found(t, s, store.Query{Words: words}), words)
	}
	require.Equal(t, []string{"d"}, found(t, s, store.Query{Tenant: "acme-2", Words: "refund"}))
	require.Equal(t, []string{"a", "b", "c"}, found(t, s, store.Query{Words: "refund", Ascending: true}))
	require.Equal(t, []string{"c"}, found(t, s, store.Query{Words: "refund", Status: wire.StatusFailed}))
	require.Equal(t, []string{"c"}, found(t, s, store.Query{Words: "refund", Tag: "x"}))
	require.Empty(t, found(t, s, store.Query{Words: "refund", Kind: "error"}))
	require.Equal(t, []string{"c", "b"}, found(t, s, store.Query{Words: "refund", Since: b.CreatedAt}))
	require.Equal(t, []string{"a"}, found(t, s, store.Query{Words: "refund", Until: b.CreatedAt}))
	n, err := s.Count(t.Context(), store.Query{Tenant: "acme", Words: "refund"}, 100)
	require.NoError(t, err)
	require.Equal(t, map[wire.Status]int{wire.StatusFailed: 1, a.Status: 2}, n.ByStatus)
	n, err = s.Count(t.Context(), store.Query{Tenant: "acme", Words: "refund"}, 2)
	require.NoError(t, err)
	require.False(t, n.Complete)
}

func pagesWords(t *testing.T, s store.Store) {
	want := seedRuns(t, s, 20)
	var texts []store.Text
	for i := range 20 {
		texts = append(texts, text(row(fmt.Sprintf("r%02d", i), i/3), "word"))
	}
	applyTexts(t, s, 30, texts...)
	for _, limit := range []int{1, 3, 7, 20} {
		require.Equal(t, want, walk(t, s, store.Query{Tenant: "acme", Words: "wo", Limit: limit}, func(int) {}), "limit %d", limit)
	}
	// The last run of a page is erased.
	last := row(want[4], 5)
	require.NoError(t, s.Apply(t.Context(), store.Batch{
		Erased: []store.Erasure{{Key: last.Key, CreatedAt: last.CreatedAt, Tags: last.Tags}}, Tail: store.Tail{Pos: 31, Hash: "h"},
	}))
	after := store.Place{CreatedAt: last.CreatedAt, RunID: last.RunID}
	rest := found(t, s, store.Query{Words: "word", After: after, Limit: 50})
	require.Subset(t, want[5:], rest)
	require.Subset(t, rest, want[8:], "only runs of the same instant may be missing")
}

func erasesWords(t *testing.T, s store.Store) {
	a, b := row("a", 1), row("b", 2)
	apply(t, s, 20, []store.Run{a, b})
	applyTexts(t, s, 21, text(a, "secretword"), text(b, "secretword"))
	applyTexts(t, s, 22, text(a, "secondword", "secretword"))
	applyTexts(t, s, 23, text(a, "thirdword"))
	require.Equal(t, []string{"a"}, found(t, s, store.Query{Words: "secretword secondword thirdword"}), "words of all parts")
	require.NoError(t, s.Apply(t.Context(), store.Batch{Sealed: []store.Key{b.Key}, Tail: store.Tail{Pos: 24, Hash: "h"}}))
	require.NoError(t, s.Apply(t.Context(), store.Batch{
		Erased: []store.Erasure{{Key: a.Key, CreatedAt: a.CreatedAt, Tags: a.Tags}}, Tail: store.Tail{Pos: 25, Hash: "h"},
	}))
	require.Equal(t, []string{"b"}, found(t, s, store.Query{Words: "secretword"}), "a sealed run is found")
	a.Pos = 26 // its row again: it would be found by a word that was left
	apply(t, s, 26, []store.Run{a})
	require.Equal(t, []string{"b"}, found(t, s, store.Query{Words: "secretword"}))
	require.Empty(t, found(t, s, store.Query{Words: "secondword"}))
	require.Empty(t, found(t, s, store.Query{Words: "thirdword"}))
	applyTexts(t, s, 27, text(a, "other"))
	require.Equal(t, []string{"b"}, found(t, s, store.Query{Words: "secretword"}))
	require.Equal(t, []string{"a"}, found(t, s, store.Query{Words: "other"}))
	require.NoError(t, s.Rebuild(t.Context()))
	_, err := s.Tail(t.Context())
	require.NoError(t, err)
	require.Empty(t, found(t, s, store.Query{Words: "secretword"}))
}

func boundsWords(t *testing.T, s store.Store) {
	r := row("a", 1)
	apply(t, s, 20, []store.Run{r})
	for part := range 4 {
		var list []string
		for n := range words.Max {
			list = append(list, fmt.Sprintf("p%dw%d", part, n))
		}
		applyTexts(t, s, uint64(21+part), text(r, list...))
	}
	require.Equal(t, []string{"a"}, found(t, s, store.Query{Words: "p0w1"}))
	require.Empty(t, found(t, s, store.Query{Words: "p3w1"}), "beyond the limit")
}

// A batch may have any number of frames of one run.
func boundsWordsOfABatch(t *testing.T, s store.Store) {
	r := row("a", 1)
	apply(t, s, 20, []store.Run{r})
	for pos := range uint64(3) {
		var texts []store.Text
		for part := range 30 {
			list := make([]string, words.Max)
			for n := range list {
				list[n] = fmt.Sprintf("%02dp%02dw%042d", pos, part, n)
			}
			texts = append(texts, text(r, list...))
		}
		applyTexts(t, s, 21+pos, texts...)
	}
	require.Equal(t, []string{"a"}, found(t, s, store.Query{Words: "00p00w"}))
	require.Empty(t, found(t, s, store.Query{Words: "00p01w"}), "beyond the limit")
	require.Empty(t, found(t, s, store.Query{Words: "02p00w"}), "beyond the limit")
}

// Words that the database cannot store do not stop the read model.
func survivesWords(t *testing.T, s store.Store) {
	r := row("a", 1)
	apply(t, s, 20, []store.Run{r})
	applyTexts(t, s, 21, text(r, strings.Repeat("long", 1000)))
	applyTexts(t, s, 22, text(r, "a\x00b"))
	applyTexts(t, s, 23, text(r, "refund"))
	require.Equal(t, []string{"a"}, found(t, s, store.Query{Words: "refund"}))
}

// Clients may claim any time of creation.
func ordersDistantTimes(t *testing.T, s store.Store) {
	var texts []store.Text
	var want []string
	for i, at := range []string{
		"0001-01-01T00:00:00.000Z", "1700-01-01T00:00:00.000Z", "2026-03-01T12:00:00.000Z", "2200-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z",
	} {
		r := row(fmt.Sprint("r", i), i)
		r.CreatedAt = at
		apply(t, s, uint64(20+i), []store.Run{r})
		texts = append(texts, text(r, "word"))
		want = append(want, r.RunID)
	}
	applyTexts(t, s, 30, texts...)
	require.Equal(t, want, walk(t, s, store.Query{Tenant: "acme", Words: "word", Ascending: true, Limit: 2}, func(int) {}))
	require.Equal(t, []string{"r4"}, found(t, s, store.Query{Words: "word", Since: "2300-01-01T00:00:00.000Z"}))
}
