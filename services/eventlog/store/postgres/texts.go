package postgres

import (
	"encoding/hex"
	"slices"
	"strings"

	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/words"
)

// tenantWord is the word by which the index finds the runs of a tenant. No text has its first
// character, because that is no letter.
func tenantWord(tenant string) string { return "§" + hex.EncodeToString([]byte(tenant)) }

// texts queues the words of a batch.
func (w *writing) texts(all []store.Text) {
	for chunk := range slices.Chunk(store.MergeTexts(all), chunkRows) {
		var tenant, runID, lists []string
		for i := range chunk {
			t := &chunk[i]
			tenant, runID = append(tenant, encode(t.Tenant)), append(runID, encode(t.RunID))
			lists = append(lists, tenantWord(t.Tenant)+" "+strings.Join(t.Words, " "))
		}
		w.pending.Queue(w.sql.putTexts, tenant, runID, lists, words.Max)
	}
}

// tsquery returns the condition for the words of a query. Words have letters and numbers only.
func tsquery(q store.Query) string {
	terms := []string{"'" + tenantWord(q.Tenant) + "'"}
	for word := range strings.FieldsSeq(q.Words) {
		terms = append(terms, "'"+strings.NewReplacer("'", "", `\`, "").Replace(word)+"':*")
	}
	return strings.Join(terms, " & ")
}
