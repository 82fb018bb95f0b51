package eventlog_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"waybill.dev/waybill/internal/runlog/memory"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/eventlog/logtest"
)

// instead is an event of a model gate that calls a model instead of house/small.
func instead(model string) wire.Draft {
	return wire.Draft{
		Type: wire.EventModelSubstituted,
		Payload: json.RawMessage(`{"nodeId":"n","originalProvider":"house","originalModel":"small",
		"fallbackProvider":"openai","fallbackModel":"` + model + `","missingCapabilities":["reasoning"]}`),
	}
}

func TestListSubstitutions_CountsByPairsOfModels(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, run := range []string{"run-0", "run-1", "run-2", "run-3", "run-4", "run-5", "run-6"} {
		r.begin(t, run).Step(logtest.RunStarted, instead("large"), instead("large"))
	}
	r.begin(t, "run-9").Step(logtest.RunStarted, logtest.Log("x"), logtest.Log("y"), instead("larger"))
	at := func(seq int) string { return wire.FormatTime(logtest.Epoch.Add(time.Duration(seq) * time.Millisecond)) }
	pair := func(model string, count, runs int32, seq int, ids ...string) *eventlogv1.Substitution {
		return &eventlogv1.Substitution{
			OriginalProvider: "house",
			OriginalModel:    "small",
			FallbackProvider: "openai",
			FallbackModel:    model,
			Missing:          []string{"reasoning"},
			Count:            count,
			Runs:             runs,
			LastAt:           at(seq),
			RunIds:           ids,
		}
	}
	latest := []string{"run-6", "run-5", "run-4", "run-3", "run-2"}
	for _, tt := range []struct {
		tenant string
		since  string
		want   []*eventlogv1.Substitution
	}{
		{
			logtest.Tenant, at(0),
			[]*eventlogv1.Substitution{pair("larger", 1, 1, 3, "run-9"), pair("large", 14, 7, 2, latest...)},
		},
		{
			logtest.Tenant, at(2),
			[]*eventlogv1.Substitution{pair("larger", 1, 1, 3, "run-9"), pair("large", 7, 7, 2, latest...)},
		},
		{logtest.Tenant, at(4), nil},
		{"other", at(0), nil},
	} {
		got, err := r.ListSubstitutions(within(t), &eventlogv1.ListSubstitutionsRequest{Tenant: tt.tenant, Since: tt.since})
		require.NoError(t, err)
		want := &eventlogv1.ListSubstitutionsResponse{Since: tt.since, Substitutions: tt.want}
		require.True(t, proto.Equal(want, got), "%v", got)
	}
	_, err := r.ListSubstitutions(within(t), &eventlogv1.ListSubstitutionsRequest{Tenant: logtest.Tenant, Since: "yesterday"})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
}

// For a tenant with too many, the answer has the time since which they are counted.
func TestListSubstitutions_CountsTheLatestOfTooMany(t *testing.T) {
	t.Parallel()
	cfg := eventlog.DefaultConfig()
	cfg.FreshTimeout = patience // a large frame takes a slow machine seconds
	r := openRig(t, memory.New(), filepath.Join(t.TempDir(), "eventlog.db"), cfg)
	w := r.begin(t, "run-1")
	drafts := []wire.Draft{logtest.RunStarted}
	for range 6000 {
		drafts = append(drafts, instead("large"))
	}
	w.Step(drafts...)
	got, err := r.ListSubstitutions(within(t), &eventlogv1.ListSubstitutionsRequest{
		Tenant: logtest.Tenant,
		Since:  wire.FormatTime(logtest.Epoch),
	})
	require.NoError(t, err)
	require.Equal(t, wire.FormatTime(logtest.Epoch.Add(1001*time.Millisecond)), got.GetSince())
	require.Equal(t, int32(5000), got.GetSubstitutions()[0].GetCount())
	require.Equal(t, int32(1), got.GetSubstitutions()[0].GetRuns())
}
