package interrupt_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

var (
	now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at  = interrupt.Origin{RunID: "run_1", NodeID: "gate"}
	key = interrupt.Responder{Principal: "key-1"}
)

// open opens the interrupt of a node with the given config.
func open(t testing.TB, typeID, config string) *interrupt.Pending {
	t.Helper()
	r, wrong := interrupt.From(typeID, at, json.RawMessage(config))
	require.Empty(t, wrong)
	p, _ := interrupt.Open(at, r, now, wire.Trusted)
	return p
}

func gate(t testing.TB, config string) *interrupt.Pending {
	t.Helper()
	return open(t, interrupt.TypeApprovalGate, config)
}

func by(who interrupt.Responder, value string) interrupt.Answer {
	return interrupt.Answer{Value: json.RawMessage(value), By: who, At: now.Add(time.Minute)}
}

func decide(t testing.TB, p *interrupt.Pending, a interrupt.Answer) interrupt.Decision {
	t.Helper()
	d, err := interrupt.Decide(p, a)
	require.NoError(t, err)
	return d
}

// refused returns the code, status and paths of an error.
func refused(t testing.TB, err error) (code fault.Code, status int, paths []string) {
	t.Helper()
	e, ok := fault.As(err)
	require.True(t, ok, "%v", err)
	require.NotEmpty(t, e.Message)
	problems, _ := e.Details["problems"].([]map[string]any)
	for _, p := range problems {
		require.NotEmpty(t, p["message"])
		require.NotEmpty(t, p["rule"])
		paths = append(paths, p["path"].(string))
	}
	return e.Code, e.Row().HTTP, paths
}

func types(drafts []wire.Draft) (out []wire.EventType) {
	for _, d := range drafts {
		out = append(out, d.Type)
	}
	return out
}

func payload(t testing.TB, drafts []wire.Draft, typ wire.EventType) string {
	t.Helper()
	i := slices.IndexFunc(drafts, func(d wire.Draft) bool { return d.Type == typ })
	require.GreaterOrEqual(t, i, 0, typ)
	return string(drafts[i].Payload)
}

func places(ps []workflow.Problem) (out []string) {
	for _, p := range ps {
		out = append(out, p.Path+" "+p.Rule)
	}
	return out
}
