package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/clients"
)

// exporter is an event log with one bundle.
type exporter struct {
	eventlogv1.EventLogClient

	doc []byte
}

func (e exporter) ExportRun(context.Context, *eventlogv1.ExportRunRequest, ...grpc.CallOption) (*eventlogv1.ExportRunResponse, error) {
	return &eventlogv1.ExportRunResponse{Bundle: e.doc}, nil
}

// scrubbing is a redactor with the limit of the real one that replaces a secret.
type scrubbing struct {
	redactorv1.RedactorClient

	limit, calls int
}

func (s *scrubbing) Redact(_ context.Context, req *redactorv1.RedactRequest, _ ...grpc.CallOption) (*redactorv1.RedactResponse, error) {
	s.calls++
	doc := req.GetDocuments()[0]
	if len(doc) > s.limit {
		return nil, fault.New(fault.PayloadTooLarge, "%d bytes", len(doc))
	}
	if !json.Valid(doc) {
		return nil, fault.New(fault.ValidationError, "not JSON")
	}
	return &redactorv1.RedactResponse{Documents: [][]byte{bytes.ReplaceAll(doc, []byte("secret"), []byte("[x]"))}}, nil
}

func bundleOf(events, size int) []byte {
	all := make([]string, events)
	for i := range all {
		all[i] = fmt.Sprintf(`{"sequence":%d,"text":"secret %s"}`, i, strings.Repeat("a", size))
	}
	return fmt.Appendf(nil, `{"run":{"runId":"r","note":"secret"},"events":[%s],"view":{"events":[]}}`, strings.Join(all, ","))
}

// A bundle that is larger than what the redactor reads is redacted in parts, and is the same as one that
// is redacted as a whole.
func TestBundles_RedactsLargeBundlesInParts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ events, size, calls int }{
		"small":             {3, 10, 1},
		"large":             {40_000, 600, 5},
		"few large events":  {3, 7 << 20, 4},
		"one event, larger": {1, 9 << 20, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := bundleOf(tt.events, tt.size)
			r := &scrubbing{limit: 16 << 20}
			b := clients.Bundles{EventLog: exporter{doc: doc}, Redactor: clients.Redactor{Client: r, Registrations: clients.NewRegistrations(nil)}}
			got, err := b.Whole(t.Context(), subject.Run{Tenant: "acme", RunID: "r"})
			require.NoError(t, err)
			require.True(t, bytes.Equal(bytes.ReplaceAll(doc, []byte("secret"), []byte("[x]")), got), "%.200s", got)
			require.Equal(t, tt.calls, r.calls)
		})
	}
}

func TestBundles_ReportsWhatTheRedactorCannotRead(t *testing.T) {
	t.Parallel()
	r := &scrubbing{limit: 16 << 20}
	b := clients.Bundles{EventLog: exporter{doc: bundleOf(1, 17<<20)}, Redactor: clients.Redactor{Client: r, Registrations: clients.NewRegistrations(nil)}}
	_, err := b.Whole(t.Context(), subject.Run{Tenant: "acme", RunID: "r"})
	require.Equal(t, fault.PayloadTooLarge, fault.CodeOf(err))
}
