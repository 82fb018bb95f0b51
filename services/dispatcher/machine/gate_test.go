package machine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

const needy = "conformance.modelCapability.insufficient"

// gated returns a plan whose gate offers one model with one capability.
func gated(t *testing.T, g graph, has string) machine.Plan {
	t.Helper()
	g.nodes = append(g.nodes, "a:core.noop")
	p := g.plan(t)
	p.Def.Nodes[len(p.Def.Nodes)-1].TypeID = needy
	p.Types = node.Builtin().Conformance(nil)
	p.Gate = func(_, _ string, n modelgate.Needs, _ node.Input) (modelgate.Model, modelgate.Outcome) {
		active := modelgate.Model{Provider: "p", Model: "m"}
		o := modelgate.Evaluate(n, active, modelgate.Host{
			Routes: func(modelgate.Model) bool { return false },
			Has:    func(_ modelgate.Model, id string) (bool, bool) { return id == has, true },
		})
		o.Catalogue = "sha256:c0ffee"
		return active, o
	}
	return p
}

// OpenWOP envelope contract §16.3: the refusal is recorded, and the node never starts.
func TestGate_RefusesBeforeTheNodeStarts(t *testing.T) {
	t.Parallel()
	m := machine.New(gated(t, graph{settings: `{"maxRetries":3}`}, "reasoning"), limits, runstate.New(record()))
	require.Empty(t, m.Advance(at))
	require.Equal(t, "run.started model.capability.insufficient@a node.failed@a run.failed", strings.Join(names(m), " "))
	require.JSONEq(t, `{"nodeId":"a","provider":"p","model":"m","missingCapabilities":["nonexistent-capability-9b3f"],"fallbackAttempted":false}`,
		payloadOf(t, m, wire.EventModelInsufficient))
	var failed struct {
		Error struct {
			Code    string
			Details json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal([]byte(payloadOf(t, m, wire.EventNodeFailed)), &failed))
	require.Equal(t, "capability_not_provided", failed.Error.Code)
	require.JSONEq(t, `{"missingCapabilities":["nonexistent-capability-9b3f"],"provider":"p","model":"m","catalogue":"sha256:c0ffee"}`, string(failed.Error.Details))
	require.Equal(t, "capability_not_provided", m.State().Error.Code)
	require.Zero(t, m.State().Executions, "a node that never started does not count")
}

// The error names the missing capability, but not the fallback model, which may be hidden.
func TestGate_NamesTheReasonOfARefusal(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		outcome modelgate.Outcome
		want    string
	}{
		{modelgate.Outcome{}, `model "m" of provider "p" lacks reasoning, which the node requires`},
		{modelgate.Outcome{Unknown: true}, `the catalogue of models does not say of model "m" of provider "p" that it has reasoning, which the node requires`},
		{
			modelgate.Outcome{FallbackAttempted: true},
			`model "m" of provider "p" lacks reasoning, which the node requires; the fallback model cannot be asked: its provider is not there, there is no key for it, or a policy forbids it`,
		},
		{
			modelgate.Outcome{FallbackAttempted: true, FallbackMissing: []string{"reasoning"}},
			`model "m" of provider "p" lacks reasoning, which the node requires; nor is the fallback model known to have reasoning`,
		},
	} {
		p := gated(t, graph{}, "")
		p.Gate = func(string, string, modelgate.Needs, node.Input) (modelgate.Model, modelgate.Outcome) {
			o := tc.outcome
			o.Route, o.Missing = modelgate.Refuse, []string{"reasoning"}
			return modelgate.Model{Provider: "p", Model: "m"}, o
		}
		m := machine.New(p, limits, runstate.New(record()))
		require.Empty(t, m.Advance(at))
		require.Equal(t, tc.want, m.State().Error.Message)
	}
}

func TestGate_AcceptsMetAndOpaqueRequirements(t *testing.T) {
	t.Parallel()
	met := gated(t, graph{}, "nonexistent-capability-9b3f")
	opaque := gated(t, graph{}, "")
	opaque.Gate = nil
	for name, p := range map[string]machine.Plan{"met": met, "not advertised": opaque} {
		m := machine.New(p, limits, runstate.New(record()))
		m.Advance(at)
		require.Equal(t, "run.started node.started@a node.completed@a run.completed", strings.Join(names(m), " "), name)
	}
}

// A substitution is recorded, and the node starts.
func TestGate_RecordsASubstitution(t *testing.T) {
	t.Parallel()
	p := gated(t, graph{}, "")
	p.Gate = func(string, string, modelgate.Needs, node.Input) (modelgate.Model, modelgate.Outcome) {
		own, asked := modelgate.Model{Provider: "p", Model: "m"}, modelgate.Model{Provider: "q", Model: "n"}
		return own, modelgate.Outcome{Route: modelgate.Substitute, Asked: asked, Missing: []string{"x"}}
	}
	m := machine.New(p, limits, runstate.New(record()))
	m.Advance(at)
	require.Equal(t, "run.started model.capability.substituted@a node.started@a node.completed@a run.completed", strings.Join(names(m), " "))
}

// OpenWOP envelope contract §16.3: the gate's event contains nothing from upstream, so it has no
// trust tag, even in a run with untrusted inputs. The events after it have one.
func TestGate_ItsDecisionHasNoTrustTag(t *testing.T) {
	t.Parallel()
	for name, route := range map[string]modelgate.Route{"substituted": modelgate.Substitute, "insufficient": modelgate.Refuse} {
		p := gated(t, graph{}, "")
		p.Gate = func(string, string, modelgate.Needs, node.Input) (modelgate.Model, modelgate.Outcome) {
			own, asked := modelgate.Model{Provider: "p", Model: "m"}, modelgate.Model{Provider: "q", Model: "n"}
			return own, modelgate.Outcome{Route: route, Asked: asked, Missing: []string{"x"}}
		}
		r := record()
		r.TrustBoundary = wire.Untrusted
		m := machine.New(p, limits, runstate.New(r))
		m.Advance(at)
		events, _ := m.Pending()
		for _, e := range events {
			if e.Type == wire.EventModelSubstituted || e.Type == wire.EventModelInsufficient {
				require.Empty(t, e.ContentTrust, name)
			} else if e.NodeID != "" {
				require.Equal(t, wire.Untrusted, e.ContentTrust, "%s: %s", name, e.Type)
			}
		}
	}
}

// OpenWOP envelope contract §14.3, §16.3: an error that is not retryable fails the node, whatever
// its retry policy.
func TestFailNode_RetriesNoPermanentError(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		"envelope_refusal", "capability_not_provided", "envelope_contract_violation", "cap_breached", "envelope_invalid", "envelope_truncation_unrecoverable",
	} {
		require.False(t, fault.Lookup(fault.Code(code)).Retryable, code)
		_, m, _ := trace(t, graph{nodes: []string{"a:core.ai.callPrompt"}, settings: `{"maxRetries":5}`})
		m.Flushed()
		m.FailNode(at, "a", &wire.NodeError{Code: code, Message: "m"}, wire.Trusted)
		m.Advance(at)
		require.Equal(t, "node.failed@a run.failed", strings.Join(names(m), " "), code)
	}
}

// A held attempt keeps the gate's decision. The next attempt is checked again.
func TestGate_ItsDecisionOutlivesTheExecutor(t *testing.T) {
	t.Parallel()
	p := gated(t, graph{settings: `{"maxRetries":1}`}, "")
	fallbacks := []string{"n", "o"}
	p.Gate = func(tenant, _ string, _ modelgate.Needs, _ node.Input) (modelgate.Model, modelgate.Outcome) {
		require.Equal(t, record().Owner.Tenant, tenant)
		asked := modelgate.Model{Provider: "q", Model: fallbacks[0]}
		fallbacks = fallbacks[1:]
		own := modelgate.Model{Provider: "p", Model: "m"}
		return own, modelgate.Outcome{Route: modelgate.Substitute, Asked: asked, Missing: []string{"x"}}
	}
	effect := p.Types[needy]
	effect.Class, effect.Do = node.Effect, nil
	p.Types[needy] = effect
	m := machine.New(p, limits, runstate.New(record()))
	first := m.Advance(at)
	require.Len(t, first, 1)
	require.Equal(t, &modelgate.Model{Provider: "q", Model: "n"}, first[0].Fallback)

	events, _ := m.Pending()
	folded := runstate.New(record())
	for _, e := range events {
		folded.Apply(e)
	}
	require.True(t, m.ReleaseEffects("a"))
	folded.Remember(*m.Note())
	other := machine.New(p, limits, folded)
	again := other.Advance(at)
	require.Len(t, again, 1)
	require.Equal(t, first[0].Fallback, again[0].Fallback)
	require.Empty(t, names(other), "the gate decides once")

	other.FailNode(at, "a", &wire.NodeError{Code: "x.y", Message: "m", Retryable: true}, wire.Trusted)
	due, ok := other.Due()
	require.True(t, ok)
	retried := other.Advance(due)
	require.Len(t, retried, 1)
	require.Equal(t, "o", retried[0].Fallback.Model)
	require.Equal(t, "node.retried@a model.capability.substituted@a node.started@a", strings.Join(names(other), " "))
}

// OpenWOP host contract §5.7: a missing secret fails the node before its model is checked, and
// before it starts.
func TestSecrets_AreCheckedBeforeTheModel(t *testing.T) {
	t.Parallel()
	p := gated(t, graph{}, "")
	typ := p.Types[needy]
	typ.Secrets = []pack.Secret{{ID: "k", Kind: "ai-provider"}}
	p.Types[needy] = typ
	p.Secrets = func(r *wire.RunRecord, needed []pack.Secret, in node.Input) *wire.NodeError {
		require.Equal(t, "k a "+record().RunID, needed[0].ID+" "+in.NodeID+" "+r.RunID)
		return &wire.NodeError{Code: "credential_required", Message: "m"}
	}
	m := machine.New(p, limits, runstate.New(record()))
	require.Empty(t, m.Advance(at))
	require.Equal(t, "run.started node.failed@a run.failed", strings.Join(names(m), " "))
	require.Contains(t, payloadOf(t, m, wire.EventNodeFailed), "credential_required")
}

// A node whose prompt has a picture needs a model that sees, in addition to what its type requires. One
// without a picture needs nothing.
func TestGate_APictureNeedsAModelThatSees(t *testing.T) {
	t.Parallel()
	const picture = `{"bytes":3,"mimeType":"image/png","base64":"AQID"}`
	for name, tc := range map[string]struct {
		port, has string
		refused   bool
	}{
		"blind":      {picture, "reasoning", true},
		"seeing":     {picture, "vision-input", false},
		"no picture": {`[]`, "reasoning", false},
	} {
		p := gated(t, graph{}, tc.has)
		g := graph{
			nodes:  []string{`a:core.ai.callPrompt:{"prompt":"What is it?"}`},
			inputs: map[string]string{"a": `{"media":{"type":"static","value":` + tc.port + `}}`},
		}
		gate := p.Gate
		p = g.plan(t)
		p.Gate = gate
		m := machine.New(p, limits, runstate.New(record()))
		effects := m.Advance(at)
		if !tc.refused {
			require.Len(t, effects, 1, name)
			continue
		}
		require.Empty(t, effects, name)
		require.Equal(t, "run.started model.capability.insufficient@a node.failed@a run.failed", strings.Join(names(m), " "), name)
		require.Contains(t, payloadOf(t, m, wire.EventModelInsufficient), `["vision-input"]`)
	}
}

// OpenWOP envelope contract §6, step 0: a node that emits envelopes fails before it starts on a host
// that has switched host.aiEnvelope off.
func TestGate_RefusesEnvelopesThatAreSwitchedOff(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt"}}
	p := g.plan(t)
	p.NoAIEnvelope = true
	m := machine.New(p, limits, runstate.New(record()))
	require.Empty(t, m.Advance(at))
	require.Equal(t, "run.started node.failed@a run.failed", strings.Join(names(m), " "))
	require.Contains(t, payloadOf(t, m, wire.EventNodeFailed), `"capability_required"`)
	require.Contains(t, payloadOf(t, m, wire.EventNodeFailed), `"requiredCapability":"host.aiEnvelope"`)
}
