package run_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/run"
)

// OpenWOP host contract §3.5: refused before node.started, with the id verbatim.
func TestRequires_RefuseBeforeTheNodeStarts(t *testing.T) {
	t.Parallel()
	m := run.New(planned(t, `{}`, `n1:conformance.requiresMissing:"config":{},"inputs":{}`), limits, runstate.New(record()))
	require.Empty(t, m.Advance(at))
	require.Equal(t, "run.started node.failed@n1 run.failed", strings.Join(names(m), " "))
	require.Equal(t, "capability_not_provided", m.State().Error.Code)
	require.Contains(t, m.State().Error.Message, "conformance.never-provided")
	require.Zero(t, m.State().Executions)
}

func TestRequires_LetPassWhatTheHostProvides(t *testing.T) {
	t.Parallel()
	p := planned(t, `{}`, `n1:conformance.requiresMissing:"config":{},"inputs":{}`)
	p.Provides = []string{"other", "conformance.never-provided"}
	m := run.New(p, limits, runstate.New(record()))
	m.Advance(at)
	require.Equal(t, wire.StatusCompleted, m.State().Status)
}

// OpenWOP host contract §5.7: capabilities come before secrets, and secrets before models.
func TestRequires_ComeBeforeSecretsAndModels(t *testing.T) {
	t.Parallel()
	p := planned(t, `{}`, `n1:core.noop:"config":{},"inputs":{}`)
	p.Types["core.noop"] = node.Type{ID: "core.noop", Requires: []string{"x.y"}, Secrets: []pack.Secret{{ID: "s"}}, Needs: &modelgate.Needs{}}
	p.Secrets = func(*wire.RunRecord, []pack.Secret, node.Input) *wire.NodeError { panic("asked for secrets") }
	p.Gate = func(string, string, modelgate.Needs, node.Input) (modelgate.Model, modelgate.Outcome) {
		panic("asked the gate")
	}
	m := run.New(p, limits, runstate.New(record()))
	m.Advance(at)
	require.Equal(t, "capability_not_provided", m.State().Error.Code)
}
