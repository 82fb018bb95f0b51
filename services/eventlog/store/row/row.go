// Package row lays runs and frames out in columns, as every store with tables
// does: lists as text, and a sum over each row. Databases do not notice when a
// bit of a value has changed; the sum does.
package row

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// JoinTags writes tags as lines. A tag is any text (OpenWOP host contract §2.3): where
// one holds a line break all are written with escapes, behind an empty line, which lines
// without escapes never begin with.
func JoinTags(tags []string) string {
	if !slices.ContainsFunc(tags, func(t string) bool { return strings.Contains(t, "\n") }) {
		return strings.Join(tags, "\n")
	}
	var b strings.Builder
	for _, t := range tags {
		b.WriteString("\n" + escapes.Replace(t))
	}
	return b.String()
}

var (
	escapes   = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	unescapes = strings.NewReplacer(`\\`, `\`, `\n`, "\n")
)

// SplitTags reads what JoinTags wrote.
func SplitTags(s string) []string {
	if s == "" {
		return nil
	}
	if lines, escaped := strings.CutPrefix(s, "\n"); escaped {
		var tags []string
		for line := range strings.SplitSeq(lines, "\n") {
			tags = append(tags, unescapes.Replace(line))
		}
		return tags
	}
	return slices.Collect(strings.SplitSeq(s, "\n"))
}

// JoinTypes writes types of events as a list with commas.
func JoinTypes(types []wire.EventType) string {
	parts := make([]string, len(types))
	for i, t := range types {
		parts[i] = string(t)
	}
	return strings.Join(parts, ",")
}

// SplitTypes reads what JoinTypes wrote.
func SplitTypes(s string) []wire.EventType {
	if s == "" {
		return nil
	}
	out := make([]wire.EventType, 0, strings.Count(s, ",")+1)
	for t := range strings.SplitSeq(s, ",") {
		out = append(out, wire.EventType(t))
	}
	return out
}

// Sum is the sum of a row, as it is stored with it.
type Sum int64

// Verify compares with the sum a row was stored with. Errors: store.ErrDamaged.
func (s Sum) Verify(stored int64, what string, key store.Key) error {
	if int64(s) == stored {
		return nil
	}
	return fmt.Errorf("%w: checksum of %s of run %s", store.ErrDamaged, what, key.RunID)
}

// SumTail sums up a position.
func SumTail(t store.Tail) Sum {
	var c checksum
	c.number(int64(t.Pos)) //nolint:gosec // G115: positions stay far below 2^63
	c.text(t.Hash)
	return c.sum()
}

// SumRun sums up a run's row; tags are as they are stored.
func SumRun(r *store.Run, tags string) Sum {
	var c checksum
	for _, s := range []string{
		r.Tenant, r.RunID, r.WorkflowID, string(r.Status), r.CreatedAt, r.StartedAt, r.CompletedAt,
		r.ErrorCode, tags, r.Hash, r.Damage,
	} {
		c.text(s)
	}
	c.number(int64(r.Head))
	c.number(int64(r.Pos)) //nolint:gosec // G115: as above
	c.number(r.DueMs)
	c.number(int64(r.Asks))
	if r.LastEventAt != "" { // rows of an older version have neither of these
		c.text(r.LastEventAt)
		c.text(r.Waits)
	}
	if r.Owner != (store.Owner{}) { // nor do rows without one
		c.text(r.Owner.Process)
		c.number(int64(r.Owner.Epoch)) //nolint:gosec // G115: epochs stay far below 2^63
		c.text(r.Owner.Since)
	}
	return c.sum()
}

// SumFrame sums up a frame; types are as they are stored.
func SumFrame(f *store.Frame, types string) Sum {
	var c checksum
	c.text(f.Tenant)
	c.text(f.RunID)
	c.number(int64(f.First))
	c.number(int64(f.Last))
	c.text(types)
	c.bytes(f.Body)
	return c.sum()
}

// SumSubstitution sums up a substitution; missing is as it is stored.
func SumSubstitution(s *store.Substitution, missing string) Sum {
	var c checksum
	for _, t := range []string{
		s.Tenant, s.RunID, s.At, s.NodeID, s.Original.Provider, s.Original.Model, s.Fallback.Provider, s.Fallback.Model, missing,
	} {
		c.text(t)
	}
	c.number(int64(s.Sequence))
	return c.sum()
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum sums up the fields of a row, each with its length.
type checksum struct {
	crc uint32
	buf [binary.MaxVarintLen64]byte
}

func (c *checksum) text(s string) { c.bytes([]byte(s)) }

func (c *checksum) bytes(b []byte) {
	c.number(int64(len(b)))
	c.crc = crc32.Update(c.crc, castagnoli, b)
}

func (c *checksum) number(n int64) {
	c.crc = crc32.Update(c.crc, castagnoli, binary.AppendVarint(c.buf[:0], n))
}

func (c *checksum) sum() Sum { return Sum(c.crc) }
