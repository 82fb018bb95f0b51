// Package row maps runs and frames to columns for stores with tables: lists as text, and a checksum
// per row. Databases do not detect a flipped bit in a value; the checksum does.
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

// JoinTags joins tags with line breaks. A tag is any text (OpenWOP host contract §2.3): if one
// contains a line break, all are escaped and preceded by an empty line, which unescaped tags never
// start with.
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

// SplitTags reverses JoinTags.
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

// JoinTypes joins event types with commas.
func JoinTypes(types []wire.EventType) string {
	parts := make([]string, len(types))
	for i, t := range types {
		parts[i] = string(t)
	}
	return strings.Join(parts, ",")
}

// SplitTypes reverses JoinTypes.
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

// Sum is the checksum of a row, stored with it.
type Sum int64

// Verify compares with the stored checksum. Errors: store.ErrDamaged.
func (s Sum) Verify(stored int64, what string, key store.Key) error {
	if int64(s) == stored {
		return nil
	}
	return fmt.Errorf("%w: checksum of %s of run %s", store.ErrDamaged, what, key.RunID)
}

// SumTail returns the checksum of a position.
func SumTail(t store.Tail) Sum {
	var c checksum
	c.number(int64(t.Pos)) //nolint:gosec // G115: positions stay far below 2^63
	c.text(t.Hash)
	return c.sum()
}

// SumRun returns the checksum of a run's row; tags in their stored form.
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
	if r.LastEventAt != "" { // rows of an older version have neither
		c.text(r.LastEventAt)
		c.text(r.Waits)
	}
	if r.Owner != (store.Owner{}) { // rows without an owner have none
		c.text(r.Owner.Process)
		c.number(int64(r.Owner.Epoch)) //nolint:gosec // G115: epochs stay far below 2^63
		c.text(r.Owner.Since)
	}
	if r.Facts.Known { // rows of an older version have none
		c.facts(&r.Facts)
	}
	return c.sum()
}

// SumFrame returns the checksum of a frame; types in their stored form.
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

// SumSubstitution returns the checksum of a substitution; missing in its stored form.
func SumSubstitution(s *store.Substitution, missing string) Sum {
	var c checksum
	for _, t := range []string{
		s.Tenant, s.RunID, s.At, s.NodeID, s.Original.Provider, s.Original.Model, s.Fallback.Provider,
		s.Fallback.Model, missing,
	} {
		c.text(t)
	}
	c.number(int64(s.Sequence))
	return c.sum()
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum sums the fields of a row, each with its length.
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
