package natsstore

import (
	"strings"

	auditstore "waybill.dev/waybill/internal/audit/jetstream"
	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/protocol/subject"
)

// Layout is the natsd.Layout of the host's streams.
type Layout struct{}

// place is where the parts of a bucket's keys, which dots separate, name a tenant and a run; -1 for
// nowhere.
type place struct{ tenant, run int }

// documents are the buckets whose values are JSON objects.
var documents = map[string]place{ //nolint:gochecknoglobals // a constant
	"waybill_workflows":     {1, -1}, // ref.TENANT.ID; a document's key names no tenant
	"waybill_claims":        {1, -1},
	"waybill_quarantine":    {1, 2},
	"waybill_retention":     {1, 2},
	"waybill_waiting":       {-1, -1},
	"waybill_rates":         {-1, -1},
	"waybill_leases":        {-1, -1},
	"waybill_annotations":   {0, 1},
	"waybill_desk":          {1, 2}, // the owner of a view is no token
	"waybill_audit_keys":    {1, -1},
	"waybill_idempotency":   {-1, -1},
	"waybill_webhooks":      {1, -1},
	"waybill_webhook_lanes": {1, 3},
	"waybill_webhook_dead":  {1, -1},
}

// Record describes a record; see natsd.Layout.
func (Layout) Record(stream, subj string, value []byte) natsd.Record {
	bucket, isBucket := strings.CutPrefix(stream, jetkv.Stream(""))
	switch {
	case stream == subject.Stream:
		run, _, err := subject.Parse(subj)
		return natsd.Record{Valid: err == nil, Tenant: run.Tenant, RunID: run.RunID}
	case stream == auditstore.Stream:
		tenant, ok := auditstore.TenantOf(subj)
		return natsd.Record{Valid: ok, Tenant: tenant}
	case isBucket:
		return bucketRecord(bucket, subj, value)
	}
	return natsd.Record{Valid: true}
}

func bucketRecord(bucket, subj string, value []byte) natsd.Record {
	key, ok := strings.CutPrefix(subj, "$KV."+bucket+".")
	if !ok || key == "" || strings.ContainsFunc(key, func(r rune) bool {
		return !subject.Token(string(r)) && !strings.ContainsRune("/=.", r)
	}) {
		return natsd.Record{}
	}
	at, isDocument := documents[bucket]
	if !isDocument {
		return natsd.Record{Valid: true}
	}
	parts := strings.Split(key, ".")
	part := func(i int) string {
		if i < 0 || i >= len(parts) || parts[0] == "doc" || !subject.Token(parts[i]) {
			return ""
		}
		return parts[i]
	}
	return natsd.Record{
		// A damaged value is zero bytes.
		Valid:  len(value) == 0 || value[0] == '{' || value[0] == 0,
		Tenant: part(at.tenant),
		RunID:  part(at.run),
	}
}
