package row

import (
	"fmt"

	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/tally"
)

// EncodeTally returns the stored form of a tally, and the checksum of its row.
func EncodeTally(b tally.Bucket, t *tally.Tally) (doc []byte, sum int64) {
	doc = tally.AppendStored(nil, t)
	return doc, sumTally(b, doc)
}

// DecodeTally reverses EncodeTally. Errors: store.ErrDamaged.
func DecodeTally(b tally.Bucket, doc []byte, sum int64) (t tally.Tally, err error) {
	if sumTally(b, doc) != sum {
		return t, fmt.Errorf("%w: checksum of a tally of workflow %s", store.ErrDamaged, b.WorkflowID)
	}
	if t, err = tally.ParseStored(doc); err != nil {
		return t, fmt.Errorf("%w: tally of workflow %s: %w", store.ErrDamaged, b.WorkflowID, err)
	}
	return t, nil
}

func sumTally(b tally.Bucket, doc []byte) int64 {
	var c checksum
	c.text(b.Tenant)
	c.text(b.WorkflowID)
	c.number(int64(b.Grain))
	c.number(b.At)
	c.bytes(doc)
	return int64(c.sum())
}
