package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/words"
)

// textIDs is the number of ids of runs that were created in the same millisecond, as a power of two.
const textIDs = 20

// lastTextTime is the last millisecond with ids of its own. Later runs share them.
const lastTextTime = math.MaxInt64>>textIDs - 1

// firstTextID returns the first id of runs that were created at a time in wire.TimeLayout.
func firstTextID(createdAt string) int64 {
	at, err := time.Parse(wire.TimeLayout, createdAt)
	if err != nil {
		return 0
	}
	return min(max(at.UnixMilli(), -lastTextTime), lastTextTime) << textIDs
}

// tenantWord is the word by which the index finds the runs of a tenant. No text has its first
// character, because that is no letter.
func tenantWord(tenant string) string { return "§" + hex.EncodeToString([]byte(tenant)) }

// texts adds the words of a batch.
func (w *writeStmts) texts(ctx context.Context, all []store.Text) error {
	for _, t := range store.MergeTexts(all) {
		if err := w.text(ctx, &t); err != nil {
			return err
		}
	}
	return nil
}

func (w *writeStmts) text(ctx context.Context, t *store.Text) error {
	var (
		id  int64
		old string
	)
	err := w.getText.QueryRowContext(ctx, t.Tenant, t.RunID).Scan(&id, &old)
	if errors.Is(err, sql.ErrNoRows) {
		first := firstTextID(t.CreatedAt)
		list := tenantWord(t.Tenant) + " " + strings.Join(t.Words, " ")
		err := w.putText.QueryRowContext(ctx, first, first+1<<textIDs, t.Tenant, t.RunID, list).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) { // the ids of the millisecond are used up
			return nil
		}
		if err != nil {
			return err
		}
		_, err = w.indexText.ExecContext(ctx, id, list)
		return err
	}
	if err != nil {
		return err
	}
	before := strings.Fields(old)
	if len(before) > words.Max {
		return nil
	}
	after := words.Union(before, t.Words, 1+2*words.Max)
	if len(after) == len(before) {
		return nil
	}
	if _, err := w.setText.ExecContext(ctx, strings.Join(after, " "), id); err != nil {
		return err
	}
	// The index gets the new words only: a word leads to its rows, whenever each was added. To write all
	// words again would cost a frame of a run with many words a hundred times as much.
	_, err = w.indexText.ExecContext(ctx, id, strings.Join(after[len(before):], " "))
	return err
}

// eraseWords deletes the words of a run.
func (w *writeStmts) eraseWords(ctx context.Context, key store.Key) error {
	var (
		id  int64
		old string
	)
	err := w.getText.QueryRowContext(ctx, key.Tenant, key.RunID).Scan(&id, &old)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := w.unindexText.ExecContext(ctx, id, old); err != nil {
		return err
	}
	_, err = w.eraseText.ExecContext(ctx, id)
	return err
}

// fromTexts scans the index, so that the newest runs are found first.
const fromTexts = `text_index AS f CROSS JOIN texts AS x ON x.id = f.rowid CROSS JOIN runs AS p ON p.tenant = x.tenant AND p.run_id = x.run_id`

// byWords makes the selection scan the index of words.
func (w *selection) byWords(q store.Query) {
	match := []string{`"` + tenantWord(q.Tenant) + `"`}
	for word := range strings.FieldsSeq(q.Words) {
		match = append(match, `"`+strings.ReplaceAll(word, `"`, "")+`"*`)
	}
	w.from = fromTexts
	w.add("f.text_index MATCH ?", strings.Join(match, " AND "))
	if q.Since != "" {
		w.add("f.rowid >= ?", firstTextID(q.Since))
	}
	if q.Until != "" {
		w.add("f.rowid < ?", firstTextID(q.Until)+1<<textIDs)
	}
}

// wordsQuery builds a statement for a list of runs with words. A place of a run that was erased stands
// for its millisecond.
func wordsQuery(q store.Query) (string, []any) {
	w := filters(q)
	order, than, edge := "DESC", "<", firstTextID(q.After.CreatedAt)
	if q.Ascending {
		order, than, edge = "ASC", ">", edge+1<<textIDs-1
	}
	if q.After != (store.Place{}) {
		w.add("f.rowid "+than+" coalesce((SELECT id FROM texts WHERE tenant = ? AND run_id = ?), ?)", q.Tenant, q.After.RunID, edge)
	}
	return "SELECT p." + strings.ReplaceAll(runColumns, ", ", ", p.") + w.clauses() + " ORDER BY f.rowid " + order + " LIMIT ?",
		append(slices.Clone(w.args), q.Limit)
}
