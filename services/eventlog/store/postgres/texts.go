package postgres

import (
	"context"
	"encoding/hex"
	"strings"

	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/words"
)

// tenantWord is the word by which the index finds the runs of a tenant. No text has its first
// character, because that is no letter.
func tenantWord(tenant string) string { return "§" + hex.EncodeToString([]byte(tenant)) }

// texts sends the words of a batch in groups of a limited size.
func (w *writing) texts(ctx context.Context, all []store.Text) error {
	var (
		tenant, runID, lists []string
		size                 int
	)
	send := func() {
		if len(lists) > 0 {
			w.pending.Queue(w.sql.putTexts, tenant, runID, lists, words.Max)
		}
		tenant, runID, lists, size = nil, nil, nil, 0
	}
	for _, t := range store.MergeTexts(all) {
		list := strings.Join(append([]string{tenantWord(t.Tenant)}, t.Words...), " ")
		tenant, runID, lists = append(tenant, encode(t.Tenant)), append(runID, encode(t.RunID)), append(lists, list)
		if size += len(list); size < chunkBytes && len(lists) < chunkRows {
			continue
		}
		send()
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	send()
	return nil
}

// refused reports whether the server does not take a value: it is too large, or not a text.
func refused(err error) bool {
	const classLimit, classData = "54", "22"
	c := code(err)
	return strings.HasPrefix(c, classLimit) || strings.HasPrefix(c, classData)
}

// withoutWords returns the texts with no words, so that words cannot stop the read model.
func withoutWords(all []store.Text) []store.Text {
	out := make([]store.Text, len(all))
	for i, t := range all {
		out[i] = store.Text{Key: t.Key, CreatedAt: t.CreatedAt}
	}
	return out
}

// tsquery returns the condition for the words of a query. Words have letters and numbers only.
func tsquery(q store.Query) string {
	terms := []string{"'" + tenantWord(q.Tenant) + "'"}
	for word := range strings.FieldsSeq(q.Words) {
		terms = append(terms, "'"+strings.NewReplacer("'", "", `\`, "").Replace(word)+"':*")
	}
	return strings.Join(terms, " & ")
}
