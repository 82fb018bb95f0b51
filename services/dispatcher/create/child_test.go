package create_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/create"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/node"
)

func childRig(t *testing.T, v *vault) (*create.Starter, *memory.Log) {
	t.Helper()
	defs := shelf{}
	for _, d := range documents {
		def, problems := workflow.Parse([]byte(d))
		require.Empty(t, problems)
		defs[def.ID] = &definition.Entry{Def: def, Graph: workflow.Compile(def), Digest: def.Digest()}
	}
	log := memory.New()
	return create.New(create.Deps{
		Storage:   create.Storage{Log: log, Definitions: defs},
		Redaction: create.Redaction{Redactor: &redactor{}, Secrets: v},
		Checks:    create.Checks{Types: node.Builtin()},
		Models: create.Models{
			Providers:       []string{"openai", "sample"},
			BYOK:            []string{"openai"},
			DefaultProvider: "sample",
			MockProviders:   []string{"stream-text"},
		},
		Limits: create.Limits{MaxDuration: time.Hour, MaxDepth: 2},
		Clock:  time.Now,
	}), log
}

func parentRecord() *wire.RunRecord {
	return &wire.RunRecord{
		RunID:         "run_p",
		WorkflowID:    "parent",
		Owner:         wire.Owner{Tenant: "acme", Workspace: "w", Principal: "ann"},
		ScopeID:       "scope",
		TestKey:       true,
		Tags:          []string{"t"},
		Metadata:      json.RawMessage(`{"m":1}`),
		CallbackURL:   "https://example.com",
		Transport:     "rest",
		CredentialRef: "main",
		Configurable:  json.RawMessage(`{"ai.provider":"openai","ai.credentialRef":"main","mockProvider":{"id":"stream-text"},"recursionLimit":9,"runTimeoutMs":5000,"tone":"dry"}`),
	}
}

func wish(workflowID string) create.Child {
	return create.Child{
		RunID:       "run_c",
		Parent:      parentRecord(),
		NodeID:      "call",
		Attempt:     1,
		WorkflowID:  workflowID,
		Awaited:     true,
		Cascade:     true,
		Inputs:      map[string]json.RawMessage{"who": json.RawMessage(`"me"`)},
		Trust:       wire.Trusted,
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

func recordOf(t *testing.T, log *memory.Log) *wire.RunRecord {
	t.Helper()
	frames, err := log.Run(t.Context(), subject.Run{Tenant: "acme", RunID: "run_c"})
	require.NoError(t, err)
	require.Len(t, frames, 1)
	rec, err := frames[0].Record()
	require.NoError(t, err)
	return rec
}

// A child inherits its parent's model settings, but not the identity of the parent's caller.
func TestStartChild_InheritsWhatItWorksWith(t *testing.T) {
	t.Parallel()
	v := &vault{}
	s, log := childRig(t, v)
	require.NoError(t, s.StartChild(t.Context(), wish("plain")))
	rec := recordOf(t, log)
	require.Equal(t, parentRecord().Owner, rec.Owner)
	require.Equal(t, "scope", rec.ScopeID)
	require.Equal(t, "main", rec.CredentialRef)
	require.True(t, rec.TestKey)
	require.Equal(t, wish("").Traceparent, rec.Traceparent)
	require.Equal(t, &wire.Parent{
		RunID:      "run_p",
		WorkflowID: "parent",
		NodeID:     "call",
		Attempt:    1,
		Depth:      1,
		Awaited:    true,
		Cascade:    true,
	}, rec.Parent)
	require.JSONEq(t, `{"ai.provider":"openai","ai.credentialRef":"main","mockProvider":{"id":"stream-text"},"tone":"dry"}`, string(rec.Configurable),
		"limits bound the run they were given for")
	require.Empty(t, rec.TrustBoundary)
	require.Empty(t, rec.Tags)
	require.Empty(t, rec.Metadata)
	require.Equal(t, parentRecord().CallbackURL, rec.CallbackURL)
	require.Empty(t, rec.Transport)
	require.Equal(t, []string{"acme run_c main"}, v.opened, "before anything of it is recorded")
	require.Zero(t, v.open)
}

func TestStartChild_TakesOfConfigurableWhatItsSchemaKnows(t *testing.T) {
	t.Parallel()
	s, log := childRig(t, &vault{})
	require.NoError(t, s.StartChild(t.Context(), wish("closed")))
	require.JSONEq(t, `{"ai.provider":"openai","ai.credentialRef":"main","mockProvider":{"id":"stream-text"}}`, string(recordOf(t, log).Configurable))
}

func TestStartChild_IsUntrustedAsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	s, log := childRig(t, &vault{})
	c := wish("plain")
	c.Trust = wire.Untrusted
	require.NoError(t, s.StartChild(t.Context(), c))
	require.Equal(t, wire.Untrusted, recordOf(t, log).TrustBoundary)
}

// Starting a child again returns the first child, even if its workflow has changed.
func TestStartChild_TwiceIsOnce(t *testing.T) {
	t.Parallel()
	s, log := childRig(t, &vault{})
	require.NoError(t, s.StartChild(t.Context(), wish("plain")))
	require.NoError(t, s.StartChild(t.Context(), wish("plain")))
	first := recordOf(t, log)
	require.NoError(t, s.StartChild(t.Context(), wish("gone since")))
	require.Equal(t, first, recordOf(t, log))
}

func TestStartChild_RefusesWithTheReason(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mod  func(*create.Child)
		code fault.Code
		says string
	}{
		"no such workflow": {func(c *create.Child) { c.WorkflowID = "ghost" }, fault.WorkflowNotFound, "no such workflow"},
		"itself":           {func(c *create.Child) { c.WorkflowID = "parent" }, fault.ValidationError, "cannot run itself"},
		"too deep": {
			func(c *create.Child) { c.Parent.Parent = &wire.Parent{Depth: 2} },
			fault.RecursionLimit, "nested 2 deep",
		},
		"wrong type": {
			func(c *create.Child) { c.Inputs = map[string]json.RawMessage{"who": json.RawMessage(`7`)} },
			fault.ValidationError, "/inputs/who",
		},
		"nothing required": {func(c *create.Child) { c.WorkflowID = "needs" }, fault.ValidationError, "/inputs/mail"},
		"cannot be run":    {func(c *create.Child) { c.WorkflowID = "foreign" }, fault.CapabilityRequired, "core.dispatch"},
	} {
		s, log := childRig(t, &vault{})
		c := wish("plain")
		tc.mod(&c)
		err := s.StartChild(t.Context(), c)
		require.Equal(t, tc.code, fault.CodeOf(err), name)
		require.ErrorContains(t, err, tc.says, name)
		require.Empty(t, log.Frames(), name)
	}
}

func TestStartChild_AnUnsetVariableIsNotRequired(t *testing.T) {
	t.Parallel()
	s, log := childRig(t, &vault{})
	c := wish("needs")
	c.Inputs, c.Unset = nil, []string{"mail"}
	require.NoError(t, s.StartChild(t.Context(), c))
	require.NotContains(t, recordOf(t, log).Defaults, "mail")
}
