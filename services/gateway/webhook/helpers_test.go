package webhook_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/version"
	"waybill.dev/waybill/protocol/subject"
)

const wireVersion = version.Version

func runOf(id string) subject.Run { return subject.Run{Tenant: "acme", WorkflowID: "flow", RunID: id} }

// dumper returns the content of a store.
type dumper struct{ kv.Store }

func (d dumper) dump() string {
	var b strings.Builder
	for _, prefix := range []string{"w.", "lane.", "dead."} {
		found, err := kv.List(context.Background(), d.Store, prefix)
		if err != nil {
			panic(err)
		}
		for _, e := range found {
			b.WriteString(e.Key + "=" + string(e.Value) + "\n")
		}
	}
	return b.String()
}

func fingerprintOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])[:8]
}

const minute = time.Minute

// epoch is when a bubble begins.
func epoch() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }
