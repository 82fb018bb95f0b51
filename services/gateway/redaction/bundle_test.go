package redaction_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/redaction"
)

const (
	secret = "hunter2x"
	marker = "[REDACTED:a-secret-with-a-name-that-is-longer-than-its-value]"
)

// eventLog returns bundles of the maximum size, with a share of secrets.
type eventLog struct {
	eventlogv1.EventLogClient

	secrets int // share of the bundle, in percent
	rooms   []int64
	last    *eventlogv1.ExportRunRequest
	err     error
}

func (l *eventLog) ExportRun(_ context.Context, req *eventlogv1.ExportRunRequest, _ ...grpc.CallOption) (*eventlogv1.ExportRunResponse, error) {
	if l.err != nil {
		return nil, l.err
	}
	l.last, l.rooms = req, append(l.rooms, req.GetMaxBytes())
	n := int(req.GetMaxBytes()) * l.secrets / 100 / len(secret)
	text := strings.Repeat(secret, n)
	return &eventlogv1.ExportRunResponse{Bundle: []byte(`"` + text + strings.Repeat(".", int(req.GetMaxBytes())-len(text)-2) + `"`)}, nil
}

// redactor replaces the secret, or returns the configured error.
type redactor struct {
	redactorv1.RedactorClient

	scopes []*redactorv1.Scope
	err    func(*redactorv1.Scope) error
	none   bool
}

func (r *redactor) Redact(_ context.Context, req *redactorv1.RedactRequest, _ ...grpc.CallOption) (*redactorv1.RedactResponse, error) {
	r.scopes = append(r.scopes, &redactorv1.Scope{Tenant: req.GetScope().GetTenant(), RunId: req.GetScope().GetRunId()})
	if r.err != nil {
		if err := r.err(req.GetScope()); err != nil {
			return nil, err
		}
	}
	res := &redactorv1.RedactResponse{}
	for _, d := range req.GetDocuments() {
		if !r.none {
			res.Documents = append(res.Documents, []byte(strings.ReplaceAll(string(d), secret, marker)))
		}
	}
	return res, nil
}

// A secret that was registered after the events were recorded is still in the
// log, and not in a bundle.
func TestExport_RedactsTheWholeBundleAgain(t *testing.T) {
	t.Parallel()
	log, red := &eventLog{secrets: 1}, &redactor{}
	doc, err := redaction.BundleExporter{EventLog: log, Redactor: red}.Export(t.Context(), "acme", "run_1", 7)
	require.NoError(t, err)
	require.NotContains(t, string(doc), secret)
	require.Contains(t, string(doc), marker)
	require.Equal(t, "acme run_1 7", log.last.GetTenant()+" "+log.last.GetRunId()+" "+strconv.Itoa(int(log.last.GetMaxEvents())))
	require.Equal(t, "acme run_1", red.scopes[0].GetTenant()+" "+red.scopes[0].GetRunId(), "with the secrets of the tenant and the run")
}

func TestExport_StaysWithinTheCapWithItsMarkers(t *testing.T) {
	t.Parallel()
	for _, share := range []int{0, 5, 50, 90} {
		log := &eventLog{secrets: share}
		doc, err := redaction.BundleExporter{EventLog: log, Redactor: &redactor{}}.Export(t.Context(), "acme", "run_1", 0)
		require.NoError(t, err)
		require.LessOrEqual(t, len(doc), redaction.MaxBundleBytes)
		require.Greater(t, len(doc), redaction.MaxBundleBytes*8/10, "and fills it: %d%%", share)
		require.Equal(t, int64(redaction.MaxBundleBytes), log.rooms[0])
	}
}

func TestExport_WithoutTheRedactorExportsNothing(t *testing.T) {
	t.Parallel()
	for name, red := range map[string]*redactor{
		"away":            {err: func(*redactorv1.Scope) error { return fault.New(fault.ServiceUnavailable, "away") }},
		"broken":          {err: func(*redactorv1.Scope) error { return errors.New("no") }},
		"answers too few": {none: true},
	} {
		doc, err := redaction.BundleExporter{EventLog: &eventLog{}, Redactor: red}.Export(t.Context(), "acme", "run_1", 0)
		require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), name)
		require.ErrorContains(t, err, "the redactor is unavailable", name)
		require.Nil(t, doc)
	}
	_, err := redaction.BundleExporter{
		EventLog: &eventLog{err: fault.New(fault.RunNotFound, "no such run")},
		Redactor: &redactor{},
	}.Export(t.Context(), "acme", "x", 0)
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
}
