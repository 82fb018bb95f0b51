package seam_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/publishedtest"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/seam"
)

var errDown = errors.New("store down")

// flaky is a store with one failing operation.
type flaky struct {
	*seam.Shared

	fails string
}

func (f flaky) Load(ctx context.Context, k seam.Key) (seam.StoredOutcome, bool, error) {
	if f.fails == "load" {
		return seam.StoredOutcome{}, false, errDown
	}
	return f.Shared.Load(ctx, k)
}

func (f flaky) Save(ctx context.Context, k seam.Key, kept seam.StoredOutcome) (seam.StoredOutcome, error) {
	if f.fails == "save" {
		return seam.StoredOutcome{}, errDown
	}
	return f.Shared.Save(ctx, k, kept)
}

func (f flaky) Capability(ctx context.Context, tenant, name string) (bool, bool, error) {
	if f.fails == "capability" {
		return false, false, errDown
	}
	return f.Shared.Capability(ctx, tenant, name)
}

func (f flaky) Append(ctx context.Context, tenant, run string, drafts []wire.Draft) ([]wire.Event, error) {
	if f.fails == "append" {
		return nil, errDown
	}
	return f.Shared.Append(ctx, tenant, run, drafts)
}

func (f flaky) AppendOnce(ctx context.Context, tenant, run, correlationID string, drafts []wire.Draft) ([]wire.Event, error) {
	if f.fails == "append" {
		return nil, errDown
	}
	return f.Shared.AppendOnce(ctx, tenant, run, correlationID, drafts)
}

func (f flaky) Trace(ctx context.Context, tenant, run string, span seam.Span) error {
	if f.fails == "trace" {
		return errDown
	}
	return f.Shared.Trace(ctx, tenant, run, span)
}

func TestExercise_ReportsAStoreThatFails(t *testing.T) {
	t.Parallel()
	good := body{
		"envelope":       envelope("error", `{"code":"x","message":"y"}`),
		"projectTo":      body{"runId": "r"},
		"persistedDedup": body{"runId": "r"},
	}
	bad := body{"envelope": envelope("error", `{}`), "projectTo": body{"runId": "r"}, "persistedDedup": body{"runId": "r"}}
	for _, fails := range []string{"load", "save", "capability", "append", "trace"} {
		for name, b := range map[string]body{"accepted": good, "refused": bad} {
			t.Run(fails+" "+name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				store := flaky{Shared: f.memory.Shared, fails: fails}
				f.x.Store, f.x.Log = store, store
				text, err := json.Marshal(b)
				require.NoError(t, err)
				_, err = f.x.Exercise(t.Context(), tenant, text)
				if fails == "load" && name == "refused" { // it never got to dedup
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, errDown)
			})
		}
	}
}

func TestProject_EventsSatisfyThePublishedSchemas(t *testing.T) {
	t.Parallel()
	schemas := publishedtest.Load(t)
	event := schemas.Need(t, "run-event.schema.json")
	defs := map[wire.EventType]*jsonschema.Schema{
		wire.EventNodeFailed:  schemas.Need(t, "run-event-payloads.schema.json#/$defs/nodeFailed"),
		wire.EventCapBreached: schemas.Need(t, "run-event-payloads.schema.json#/$defs/capBreached"),
		wire.EventLogAppended: schemas.Need(t, "run-event-payloads.schema.json#/$defs/logAppended"),
	}
	to := body{"runId": "r", "refusalMode": "discard-and-warn"}
	for name, b := range map[string]body{
		"invalid":   {"envelope": envelope("error", `{}`), "projectTo": to},
		"misshapen": {"envelope": 7, "projectTo": to},
		"gated":     {"envelope": envelope(vendor, `{}`), "projectTo": body{"runId": "r"}},
		"discarded": {"envelope": envelope(vendor, `{}`), "projectTo": to},
		"breached": {
			"envelope":  envelope("clarification.request", good),
			"counters":  body{"clarificationRounds": counter(0, 0)},
			"projectTo": to,
		},
		"schema": {
			"envelope":  envelope("schema.request", `{"envelopeType":"error"}`),
			"counters":  body{"schemaRounds": counter(2, 2)},
			"projectTo": to,
		},
		"turn": {
			"envelope":  envelope("error", `{"code":"x","message":"y"}`),
			"counters":  body{"envelopesPerTurn": counter(2, 2)},
			"projectTo": to,
		},
	} {
		f := newFixture(t)
		f.exercise(b)
		events := f.memory.events(tenant, "r")
		require.NotEmpty(t, events, name)
		for _, e := range events {
			require.NotNil(t, defs[e.Type], e.Type)
			for s, text := range map[*jsonschema.Schema][]byte{event: e.AppendJSON(nil), defs[e.Type]: e.Payload} {
				v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
				require.NoError(t, err)
				require.NoError(t, s.Validate(v), string(text))
			}
		}
	}
}

// Exactly one cap.breached and one node.failed (OpenWOP envelope contract §8).
func TestProject_BreachFailsTheNodeOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := body{
		"envelope":  envelope("clarification.request", good),
		"counters":  body{"clarificationRounds": counter(3, 3), "envelopesPerTurn": counter(3, 3)},
		"projectTo": body{"runId": "r"},
	}
	f.exercise(b)
	require.Equal(t, []string{"cap.breached", "node.failed"}, f.types("r"))
	for _, e := range f.memory.events(tenant, "r") {
		require.Equal(t, "corr-1", e.CausationID)
	}
}

// Every event of an envelope has its trust, also the events of refusals (§12).
func TestProject_RefusalsCarryTheTrustOfTheEnvelope(t *testing.T) {
	t.Parallel()
	meta := map[string]any{"source": "ai-generation", "ts": "2026-01-31T12:00:00Z", "contentTrust": "untrusted"}
	for name, b := range map[string]body{
		"tag":      {"envelope": envelope("error", `{}`, "meta", meta), "projectTo": body{"runId": "r"}},
		"boundary": {"envelope": envelope("error", `{}`), "runTrustBoundary": "untrusted", "projectTo": body{"runId": "r"}},
		"shape":    {"envelope": 7, "runTrustBoundary": "untrusted", "projectTo": body{"runId": "r"}},
	} {
		f := newFixture(t)
		f.exercise(b)
		require.Equal(t, wire.Untrusted, f.memory.events(tenant, "r")[0].ContentTrust, name)
	}
}

func TestExercise_TenantsAreIsolated(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	text, err := json.Marshal(body{
		"envelope":       envelope("error", `{"code":"x","message":"y"}`),
		"projectTo":      body{"runId": "r"},
		"persistedDedup": body{"runId": "r"},
	})
	require.NoError(t, err)
	for _, tenant := range []string{"acme", "globex"} {
		_, err := f.x.Exercise(t.Context(), tenant, text)
		require.NoError(t, err)
		require.Len(t, f.memory.events(tenant, "r"), 1)
	}
}
