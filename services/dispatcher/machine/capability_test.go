package machine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// OpenWOP host contract §3.5: a node without a required capability fails before node.started, and
// its error contains the capability's id verbatim.
func TestRequires_RefuseBeforeTheNodeStarts(t *testing.T) {
	t.Parallel()
	m := machine.New(planned(t, `{}`, `n1:conformance.requiresMissing:"config":{},"inputs":{}`), limits, runstate.New(record()))
	require.Empty(t, m.Advance(at))
	require.Equal(t, "run.started node.failed@n1 run.failed", strings.Join(names(m), " "))
	require.Equal(t, "capability_not_provided", m.State().Error.Code)
	require.Contains(t, m.State().Error.Message, "conformance.never-provided")
	require.Zero(t, m.State().Executions)
}

func TestRequires_AcceptWhatTheHostProvides(t *testing.T) {
	t.Parallel()
	p := planned(t, `{}`, `n1:conformance.requiresMissing:"config":{},"inputs":{}`)
	p.Capabilities = []string{"other", "conformance.never-provided"}
	m := machine.New(p, limits, runstate.New(record()))
	m.Advance(at)
	require.Equal(t, wire.StatusCompleted, m.State().Status)
}

// OpenWOP host contract §5.7: secrets are checked first, then the provider policy, then model
// capabilities. A node that may not call its model never starts.
func TestPolicy_ComesBetweenSecretsAndModels(t *testing.T) {
	t.Parallel()
	for _, secrets := range []bool{true, false} {
		p := planned(t, `{}`, `n1:core.ai.callPrompt:"config":{"provider":"p","model":"m"},"inputs":{}`)
		typ := p.Types["core.ai.callPrompt"]
		typ.Secrets, typ.Needs = []pack.Secret{{ID: "s"}}, &modelgate.Needs{}
		p.Types = p.Types.And(typ)
		p.Secrets = func(*wire.RunRecord, []pack.Secret, node.Input) *wire.NodeError {
			if secrets {
				return nil
			}
			return &wire.NodeError{Code: "credential_required"}
		}
		p.Policy = func(r *wire.RunRecord, in node.Input) *wire.NodeError {
			require.True(t, secrets, "checked before the secrets")
			return &wire.NodeError{Code: "provider_policy_denied", Message: r.Owner.Tenant + string(in.Config)}
		}
		p.Gate = func(string, string, modelgate.Needs, node.Input) (modelgate.Model, modelgate.Outcome) {
			panic("asked the gate")
		}
		m := machine.New(p, limits, runstate.New(record()))
		require.Empty(t, m.Advance(at))
		require.Equal(t, "run.started node.failed@n1 run.failed", strings.Join(names(m), " "))
		want := map[bool]string{true: "provider_policy_denied", false: "credential_required"}[secrets]
		require.Equal(t, want, m.State().Error.Code)
	}
}

// The provider policy is not checked for nodes that call no model.
func TestPolicy_IsForNodesThatAskModels(t *testing.T) {
	t.Parallel()
	p := planned(t, `{}`, `n1:core.noop:"config":{},"inputs":{}`)
	p.Policy = func(*wire.RunRecord, node.Input) *wire.NodeError { panic("asked for a rule") }
	m := machine.New(p, limits, runstate.New(record()))
	m.Advance(at)
	require.Equal(t, wire.StatusCompleted, m.State().Status)
}

// OpenWOP host contract §5.7: capabilities are checked before secrets, and secrets before models.
func TestRequires_ComeBeforeSecretsAndModels(t *testing.T) {
	t.Parallel()
	p := planned(t, `{}`, `n1:core.noop:"config":{},"inputs":{}`)
	p.Types["core.noop"] = node.Type{
		ID:       "core.noop",
		Requires: []string{"x.y"},
		Secrets:  []pack.Secret{{ID: "s"}},
		Needs:    &modelgate.Needs{},
	}
	p.Secrets = func(*wire.RunRecord, []pack.Secret, node.Input) *wire.NodeError { panic("asked for secrets") }
	p.Gate = func(string, string, modelgate.Needs, node.Input) (modelgate.Model, modelgate.Outcome) {
		panic("asked the gate")
	}
	m := machine.New(p, limits, runstate.New(record()))
	m.Advance(at)
	require.Equal(t, "capability_not_provided", m.State().Error.Code)
}
