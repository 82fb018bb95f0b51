package conformance

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// A prior outcome supplied by a caller, not created by this host's acceptor.
const (
	priorAccepted = `{"status":"accepted","recordedEventIds":["ev-9"],"envelopeId":"env-9","normalizedMeta":{"contentTrust":"untrusted"}}`
	priorInvalid  = `{"status":"invalid","reason":"envelope_invalid: earlier","details":[]}`
	priorGated    = `{"status":"gated","reason":"envelope_contract_violation: earlier","allowedKinds":["error"]}`
	priorBreached = `{"status":"breached","reason":"cap_breached: earlier","capKind":"schema"}`
)

func prior(t *testing.T, outcome, kind string) []obj {
	t.Helper()
	return []obj{{"correlationId": "c-" + idOf(t), "outcome": json.RawMessage(outcome), "envelopeType": kind}}
}

func TestAcceptDedup_APriorOutcomeIsReturnedVerbatim(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for name, outcome := range map[string]string{
		"§23.1 priorCorrelations: accepted": priorAccepted, "§23.1 priorCorrelations: invalid": priorInvalid,
		"§23.1 priorCorrelations: gated": priorGated, "§23.1 priorCorrelations: breached": priorBreached,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := obj{
				"envelope": seamEnvelope(t, "error", obj{"code": "other", "message": "payload"}, "envelopeId", "another"), "priorCorrelations": prior(t, outcome, "error"),
				"projectTo": obj{"runId": "r-" + idOf(t)},
			}
			require.Equal(t, outcome, acceptBy(t, c, body).raw)
			require.Empty(t, seamEvents(t, c, "r-"+idOf(t), ""), "a cached outcome projects nothing")
			require.Empty(t, seamSpans(t, c, "r-"+idOf(t)))
		})
	}
	t.Run("§9 an own correlationId that is known is never breached", func(t *testing.T) {
		t.Parallel()
		body := obj{"envelope": seamEnvelope(t, "error", plainError), "priorCorrelations": prior(t, priorAccepted, "error"), "counters": obj{"envelopesPerTurn": obj{"current": 5, "cap": 5}}}
		require.Equal(t, priorAccepted, acceptBy(t, c, body).raw)
	})
	t.Run("§9 a prior of another type is a conflict", func(t *testing.T) {
		t.Parallel()
		o := acceptBy(t, c, obj{"envelope": seamEnvelope(t, "error", plainError), "priorCorrelations": prior(t, priorAccepted, "schema.request")})
		require.Equal(t, "invalid", o.Status)
		require.True(t, strings.HasPrefix(o.Reason, "envelope_correlation_conflict"), o.Reason)
	})
	t.Run("§6 dedup comes after shape, kind, payload and contract", func(t *testing.T) {
		t.Parallel()
		o := acceptBy(t, c, obj{"envelope": seamEnvelope(t, "error", obj{}), "priorCorrelations": prior(t, priorAccepted, "error")})
		require.True(t, strings.HasPrefix(o.Reason, "envelope_invalid"), o.Reason)
		o = acceptBy(t, c, obj{"envelope": seamEnvelope(t, knownTriage, json.RawMessage(triage)), "priorCorrelations": prior(t, priorAccepted, knownTriage), "nodeAllowedKinds": []string{}})
		require.Equal(t, "gated", o.Status)
	})
}

func TestAcceptDedup_Priority(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	t.Run("§23.1 priorCorrelations, then persistedDedup, then own memory", func(t *testing.T) {
		t.Parallel()
		run := obj{"runId": "dedup-" + idOf(t)}
		env := func(id string) obj { return seamEnvelope(t, "error", plainError, "envelopeId", id) }
		memory := acceptBy(t, c, obj{"envelope": env("from-memory")})
		require.Equal(t, "from-memory", memory.EnvelopeID)
		require.Equal(t, memory.raw, acceptBy(t, c, obj{"envelope": env("x")}).raw)

		// The run's store does not have it, but the seam's memory does. The memory is the last
		// source before a new decision.
		require.Equal(t, memory.raw, acceptBy(t, c, obj{"envelope": env("x"), "persistedDedup": run}).raw)

		id := "c-store-" + idOf(t)
		inRun := func(more obj) seamOutcome {
			body := obj{"envelope": seamEnvelope(t, "error", plainError, "correlationId", id), "persistedDedup": run}
			for k, v := range more {
				body[k] = v
			}
			return acceptBy(t, c, body)
		}
		refused := inRun(obj{"counters": obj{"envelopesPerTurn": obj{"current": 1, "cap": 1}}})
		require.Equal(t, "breached", refused.Status)
		fresh := acceptBy(t, c, obj{"envelope": seamEnvelope(t, "error", plainError, "correlationId", id)})
		require.Equal(t, "accepted", fresh.Status, "own memory has accepted outcomes only")
		require.Equal(t, refused.raw, inRun(nil).raw, "the run's store beats the own memory")
		require.Equal(t, priorGated, inRun(obj{"priorCorrelations": []obj{{"correlationId": id, "outcome": json.RawMessage(priorGated), "envelopeType": "error"}}}).raw)
		require.Equal(t, refused.raw, inRun(nil).raw, "a prior outcome is not copied into the store")
	})
}

func TestAcceptDedup_PersistedInARun(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for name, tc := range map[string]struct {
		first obj // members of the first call
		kind  string
		load  any
		want  string
	}{
		"§23.1 persistedDedup: accepted":  {nil, "error", plainError, "accepted"},
		"§23.1 persistedDedup: breached":  {obj{"counters": obj{"envelopesPerTurn": obj{"current": 1, "cap": 1}}}, "error", plainError, "breached"},
		"§23.1 persistedDedup: gated":     {obj{"nodeAllowedKinds": []string{}}, knownTriage, json.RawMessage(triage), "gated"},
		"§23.1 persistedDedup: invalid":   {obj{"envelopeStrictness": "strict", "schemaVersionFloor": obj{"error": 2}}, "error", plainError, "invalid"},
		"§23.1 persistedDedup: untrusted": {obj{"approvalGateContext": true, "runTrustBoundary": "untrusted"}, "error", plainError, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := func(run string, more obj) seamOutcome {
				body := obj{"envelope": seamEnvelope(t, tc.kind, tc.load), "persistedDedup": obj{"runId": run + idOf(t)}}
				for k, v := range more {
					body[k] = v
				}
				return acceptBy(t, c, body)
			}
			first := call("a-", tc.first)
			require.Equal(t, tc.want, first.Status, first.raw)
			require.Equal(t, first.raw, call("a-", nil).raw, "whatever the status was")
			if tc.want != "accepted" { // accepted outcomes are in the seam's memory, too
				require.Equal(t, "accepted", call("b-", nil).Status, "another run does not have it")
			}
			conflict := acceptBy(t, c, obj{"envelope": seamEnvelope(t, "schema.request", obj{"envelopeType": knownTriage}), "persistedDedup": obj{"runId": "a-" + idOf(t)}})
			require.True(t, strings.HasPrefix(conflict.Reason, "envelope_correlation_conflict"), conflict.raw)
			require.Equal(t, first.raw, call("a-", nil).raw, "a conflict does not replace the outcome")
		})
	}
}

func TestAcceptDedup_OwnMemory(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	t.Run("§23.1 two calls in a row", func(t *testing.T) {
		t.Parallel()
		to := obj{"runId": "r-" + idOf(t)}
		first := acceptBy(t, c, obj{"envelope": seamEnvelope(t, "error", plainError), "projectTo": to})
		again := acceptBy(t, c, obj{"envelope": seamEnvelope(t, "error", obj{"code": "y", "message": "other"}, "envelopeId", "other"), "projectTo": to})
		require.Equal(t, first.raw, again.raw)
		require.Len(t, seamEvents(t, c, "r-"+idOf(t), ""), 1)
		require.Len(t, seamSpans(t, c, "r-"+idOf(t)), 1)
	})
	t.Run("§9 another type under the same id", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, "accepted", acceptBy(t, c, obj{"envelope": seamEnvelope(t, "error", plainError)}).Status)
		o := acceptBy(t, c, obj{"envelope": seamEnvelope(t, "clarification.request", oneQuestion)})
		require.Equal(t, "invalid", o.Status)
		require.Equal(t, "/correlationId", o.Details[0].InstancePath)
	})
	t.Run("§6 a refused envelope binds nothing", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, "invalid", acceptBy(t, c, obj{"envelope": seamEnvelope(t, "error", obj{})}).Status)
		require.Equal(t, "accepted", acceptBy(t, c, obj{"envelope": seamEnvelope(t, "error", plainError)}).Status)
	})
	t.Run("§23 another tenant's memory is another", func(t *testing.T) {
		t.Parallel()
		mine := acceptBy(t, c, obj{"envelope": seamEnvelope(t, "error", plainError, "envelopeId", "mine")})
		theirs := acceptBy(t, client(t, otherKey), obj{"envelope": seamEnvelope(t, "error", plainError, "envelopeId", "theirs")})
		require.Equal(t, "mine", mine.EnvelopeID)
		require.Equal(t, "theirs", theirs.EnvelopeID)
	})
}

type seamEvent struct {
	EventID, RunID, Type, NodeID, CausationID, ContentTrust, Timestamp string
	Sequence                                                           *int
	Payload                                                            json.RawMessage
}

// seamEvents reads a test log and checks every event against the published schema.
func seamEvents(t *testing.T, c *harness.Client, run, query string) []seamEvent {
	t.Helper()
	var log struct{ Events []json.RawMessage }
	askSeam(t, c, http.MethodGet, "test/runs/"+run+"/events"+query, "", &log)
	require.NotNil(t, log.Events)
	out := make([]seamEvent, 0, len(log.Events))
	for _, doc := range log.Events {
		var e seamEvent
		require.NoError(t, json.Unmarshal(doc, &e))
		out = append(out, e)
		requirePublished(t, doc, e)
	}
	return out
}

// identity lists the members of an interrupt event that are not in the closed schema of its payload
// (OpenWOP envelope contract §24, C5).
var identity = []string{"runId", "nodeId", "interruptId", "requestedAt"}

// requirePublished checks an event against the published schemas, if they are available.
func requirePublished(t *testing.T, doc json.RawMessage, e seamEvent) {
	t.Helper()
	if published.schemas == nil {
		return
	}
	if e.Type != "interrupt.requested" {
		require.NoError(t, published.schemas.Event(doc))
		return
	}
	require.NoError(t, published.schemas.Validate("run-event.schema.json", doc))
	var payload map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(e.Payload, &payload))
	for _, name := range identity {
		require.Contains(t, payload, name)
		delete(payload, name)
	}
	b, err := json.Marshal(payload)
	require.NoError(t, err)
	require.NoError(t, published.schemas.Payload(e.Type, b))
}

func seamTypes(events []seamEvent) []string {
	return slices.Collect(func(yield func(string) bool) {
		for _, e := range events {
			if !yield(e.Type) {
				return
			}
		}
	})
}

func seamSpans(t *testing.T, c *harness.Client, run string) []testSpan {
	t.Helper()
	var got struct{ Spans []testSpan }
	askSeam(t, c, http.MethodGet, "test/otel/spans?runId="+run, "", &got)
	require.NotNil(t, got.Spans)
	return got.Spans
}
