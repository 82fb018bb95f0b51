package workflow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// scheduled returns a definition with these settings and two variables.
func scheduled(t *testing.T, settings string) []byte {
	t.Helper()
	return small(t, func(doc map[string]any) {
		doc["settings"] = json.RawMessage(settings)
		doc["variables"] = json.RawMessage(`[{"name": "order", "type": "object"}, {"name": "card", "type": "string", "sensitive": true}]`)
	})
}

func TestParse_RejectsInvalidSchedules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ settings, path, want string }{
		{`{"priority": 11}`, "/settings/priority", "-10 to 10"},
		{`{"priority": "high"}`, "/settings/priority", "-10 to 10"},
		{`{"concurrency": 5}`, "/settings/concurrency", "want an object with key, limit"},
		{`{"concurrency": {}}`, "/settings/concurrency/limit", "1 to 10000"},
		{`{"concurrency": {"limit": 0}}`, "/settings/concurrency/limit", "1 to 10000"},
		{`{"concurrency": {"limit": 1, "periodMs": 1}}`, "/settings/concurrency/periodMs", "unknown member"},
		{`{"concurrency": {"limit": 1, "key": "order.id"}}`, "/settings/concurrency/key", `want "inputs.NAME"`},
		{`{"concurrency": {"limit": 1, "key": "inputs.order..id"}}`, "/settings/concurrency/key", `want "inputs.NAME"`},
		{`{"concurrency": {"limit": 1, "key": "inputs.oder"}}`, "/settings/concurrency/key", "no variable"},
		{`{"concurrency": {"limit": 1, "key": "inputs.card"}}`, "/settings/concurrency/key", "sensitive"},
		{`{"rate": {"limit": 1001, "periodMs": 1000}}`, "/settings/rate/limit", "1 to 1000"},
		{`{"rate": {"limit": 5}}`, "/settings/rate/periodMs", "1000 to 86400000"},
	} {
		t.Run(tt.settings, func(t *testing.T) {
			t.Parallel()
			doc := scheduled(t, tt.settings)
			_, problems := workflow.Parse(doc)
			require.Len(t, problems, 1)
			require.Equal(t, tt.path, problems[0].Path)
			require.Equal(t, workflow.RuleSchedule, problems[0].Rule)
			require.Contains(t, problems[0].Message, tt.want)

			d, problems := workflow.ParseStored(doc)
			require.Empty(t, problems, "runs of a registered definition continue")
			require.False(t, d.Scheduled())
		})
	}
}

func TestSchedule_GroupsRunsByTheValueOfTheKey(t *testing.T) {
	t.Parallel()
	d, problems := workflow.Parse(scheduled(t, `{"priority": -2, "concurrency": {"key": "inputs.order.customer", "limit": 1}, "rate": {"limit": 10, "periodMs": 60000}}`))
	require.Empty(t, problems)
	require.True(t, d.Scheduled())
	of := func(inputs string) *wire.Schedule {
		var in map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(inputs), &in))
		return d.Schedule(in, map[string]json.RawMessage{"order": json.RawMessage(`{"customer": "default"}`)})
	}
	one := of(`{"order": {"customer": {"id": 1, "at": "x"}}}`)
	require.Equal(t, -2, *one.Priority)
	require.Equal(t, &wire.RateLimit{Limit: 10, PeriodMs: 60000}, one.Rate)
	require.Equal(t, 1, one.Concurrency.Limit)
	require.Equal(t, one, of(`{"order": {"customer": {"at":"x","id":1}}}`), "equal values form one group, however they are written")
	require.NotEqual(t, one, of(`{"order": {"customer": {"at":"x","id":2}}}`))
	require.Equal(t, of(`{"order": {"customer": "default"}}`), of(`{}`))
	require.Equal(t, of(`{"order": {}}`), of(`{"order": {"customer": null}}`))

	plain, problems := workflow.Parse(scheduled(t, `{}`))
	require.Empty(t, problems)
	require.Nil(t, plain.Schedule(nil, nil))
}
