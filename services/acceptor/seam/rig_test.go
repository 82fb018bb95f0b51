package seam_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/kinds"
	"waybill.dev/waybill/services/acceptor/seam"
)

const (
	tenant = "acme"
	vendor = "vendor.acme.note"
	canary = "sk-canary-0001"
	good   = `{"questions":[{"id":"q","question":"?"}]}`
)

// vault is a redactor with the canaries of open scopes.
type vault struct {
	open map[string][]seam.Canary
	down error
	// lost: it forgets registrations immediately, like a redactor that restarts.
	lost bool
}

func (v *vault) RegisterCanaries(_ context.Context, tenant string, canaries []seam.Canary) (seam.Scope, func(), error) {
	if v.down != nil {
		return seam.Scope{}, nil, v.down
	}
	id := fmt.Sprint("scope-", len(v.open))
	if !v.lost {
		v.open[id] = canaries
	}
	return seam.Scope{
		Run:           subject.Run{Tenant: tenant, RunID: id},
		Registrations: []string{id},
	}, func() { delete(v.open, id) }, nil
}

func (v *vault) Redact(_ context.Context, run subject.Run, in accept.Texts) (accept.Texts, int, error) {
	if _, known := v.open[run.RunID]; in.Registration.Run && (!known || !slices.Equal(in.Registration.Told, []string{run.RunID})) {
		return accept.Texts{}, 0, fault.New(fault.ServiceUnavailable, "not registered")
	}
	n := 0
	scrub := func(s string) string {
		for _, c := range v.open[run.RunID] {
			n += strings.Count(s, c.Value)
			s = strings.ReplaceAll(s, c.Value, "[REDACTED:"+c.SecretID+"]")
		}
		return s
	}
	var out accept.Texts
	for _, d := range in.Documents {
		out.Documents = append(out.Documents, json.RawMessage(scrub(string(d))))
	}
	for _, s := range in.Strings {
		out.Strings = append(out.Strings, scrub(s))
	}
	return out, n, v.down
}

// memory is a store whose errors fail the test.
type memory struct {
	t *testing.T
	*seam.Shared
}

func (m memory) events(tenant, run string) []wire.Event {
	m.t.Helper()
	events, err := m.Events(m.t.Context(), tenant, run)
	require.NoError(m.t, err)
	return events
}

func (m memory) spans(tenant, run string) []seam.Span {
	m.t.Helper()
	spans, err := m.Spans(m.t.Context(), tenant, run)
	require.NoError(m.t, err)
	return spans
}

func (m memory) set(name string, value *bool) {
	m.t.Helper()
	require.NoError(m.t, m.SetCapability(m.t.Context(), tenant, name, value))
}

type fixture struct {
	t      *testing.T
	memory memory
	vault  *vault
	x      *seam.Exerciser
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	clock := func() time.Time { return time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC) }
	registry, err := kinds.New(kinds.LintOff)
	require.NoError(t, err)
	f := &fixture{
		t:      t,
		memory: memory{t, seam.NewShared(kvmemory.New(), clock)},
		vault:  &vault{open: map[string][]seam.Canary{}},
	}
	f.x = &seam.Exerciser{
		Kinds:    registry,
		Redactor: f.vault,
		Canaries: f.vault,
		Store:    f.memory.Shared,
		Log:      f.memory.Shared,
		Clock:    clock,
	}
	return f
}

type body map[string]any

// envelope returns an envelope of a kind; set overwrites members.
func envelope(kind, payload string, set ...any) map[string]any {
	m := map[string]any{
		"type":          kind,
		"schemaVersion": 1,
		"envelopeId":    "env-1",
		"correlationId": "corr-1",
		"payload":       json.RawMessage(payload),
		"meta":          map[string]any{"source": "ai-generation", "ts": "2026-01-31T12:00:00Z"},
	}
	for i := 0; i < len(set); i += 2 {
		m[set[i].(string)] = set[i+1]
	}
	return m
}

// outcome returns the outcome of a request as a document.
type outcome struct {
	Status           string          `json:"status"`
	Reason           string          `json:"reason"`
	CapKind          string          `json:"capKind"`
	AllowedKinds     []string        `json:"allowedKinds"`
	RecordedEventIDs []string        `json:"recordedEventIds"`
	EnvelopeID       string          `json:"envelopeId"`
	RedactionCount   *int            `json:"redactionCount"`
	RedactedPayload  json.RawMessage `json:"redactedPayload"`
	NormalizedMeta   struct {
		ContentTrust string `json:"contentTrust"`
	} `json:"normalizedMeta"`
}

func (f *fixture) raw(b body) string {
	f.t.Helper()
	text, err := json.Marshal(b)
	require.NoError(f.t, err)
	out, err := f.x.Exercise(context.Background(), tenant, text)
	require.NoError(f.t, err)
	return string(out)
}

func (f *fixture) exercise(b body) outcome {
	f.t.Helper()
	var o outcome
	require.NoError(f.t, json.Unmarshal([]byte(f.raw(b)), &o))
	return o
}

func (f *fixture) types(run string) []string {
	var out []string
	for _, e := range f.memory.events(tenant, run) {
		out = append(out, string(e.Type))
	}
	return out
}

func counter(current, limit int) map[string]any {
	return map[string]any{"current": current, "cap": limit}
}
