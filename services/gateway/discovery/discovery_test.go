package discovery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/publishedtest"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/discovery"
)

// dispatcher describes itself as the test says.
type dispatcher struct {
	dispatcherv1.DispatcherClient
	can       *dispatcherv1.DescribeResponse
	workflows [][]*dispatcherv1.WorkflowSummary // pages
	lists     []*dispatcherv1.ListWorkflowsRequest
	err       error
}

func (d *dispatcher) Describe(context.Context, *dispatcherv1.DescribeRequest, ...grpc.CallOption) (*dispatcherv1.DescribeResponse, error) {
	return d.can, d.err
}

func (d *dispatcher) ListWorkflows(_ context.Context, r *dispatcherv1.ListWorkflowsRequest, _ ...grpc.CallOption) (*dispatcherv1.ListWorkflowsResponse, error) {
	d.lists = append(d.lists, r)
	n := len(d.lists)
	return &dispatcherv1.ListWorkflowsResponse{Workflows: d.workflows[n-1], More: n < len(d.workflows)}, nil
}

type acceptor struct {
	acceptorv1.AcceptorClient
	mu    sync.Mutex // guards asked
	asked int
	kinds []*acceptorv1.Kind
}

func (a *acceptor) ListKinds(context.Context, *acceptorv1.ListKindsRequest, ...grpc.CallOption) (*acceptorv1.ListKindsResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	return &acceptorv1.ListKindsResponse{
		Kinds:               a.kinds,
		Strictness:          "warn",
		Subset:              "warn",
		EnvelopesPerTurn:    5,
		SchemaRounds:        2,
		ClarificationRounds: 3,
	}, nil
}

// clock is a fake clock.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

type rig struct {
	*discovery.Source
	dispatcher *dispatcher
	acceptor   *acceptor
	clock      *clock
}

func newRig(change ...func(*discovery.Config, *dispatcher)) *rig {
	d := &dispatcher{
		can: &dispatcherv1.DescribeResponse{
			ReasoningDirective:   "advisory",
			Providers:            []string{"local", "sample"},
			SelfHosted:           []string{"local"},
			MaxNodeExecutions:    100,
			MaxRunDurationMs:     86400000,
			MaxRetryAttempts:     3,
			TruncationMultiplier: 2,
			MockProviders:        []string{"stream-text", "error"},
		},
		workflows: [][]*dispatcherv1.WorkflowSummary{nil},
	}
	a := &acceptor{}
	for _, name := range []string{
		"schema.response", "clarification.request", "schema.request", "error", "vendor.acme.order",
	} {
		a.kinds = append(a.kinds, &acceptorv1.Kind{Name: name, Version: 1})
	}
	cfg := discovery.Config{MaxBodyBytes: 1 << 20, GRPCEndpoint: func() string { return "grpc://127.0.0.1:9090" }}
	for _, f := range change {
		f(&cfg, d)
	}
	c := &clock{time.Unix(1_700_000_000, 0)}
	return &rig{discovery.New(cfg, d, a, c.now), d, a, c}
}

func (r *rig) bytes(t *testing.T) []byte {
	t.Helper()
	d, err := r.Document(t.Context())
	require.NoError(t, err)
	return d.JSON
}

func (r *rig) root(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal(r.bytes(t), &v))
	return v
}

func seamed(c *discovery.Config, d *dispatcher) {
	c.TestSeams = true
	d.workflows = [][]*dispatcherv1.WorkflowSummary{
		{
			{WorkflowId: "conformance-noop", Executable: true},
			{WorkflowId: "conformance-gated"},
			{WorkflowId: "mine", Executable: true},
		},
		{{WorkflowId: "openwop-smoke-identity", Executable: true}},
	}
}

func bare(_ *discovery.Config, d *dispatcher) {
	d.can = &dispatcherv1.DescribeResponse{
		ReasoningDirective:   "advisory",
		MaxNodeExecutions:    1,
		MaxRunDurationMs:     1000,
		MaxRetryAttempts:     1,
		TruncationMultiplier: 1,
	}
}

func TestDocument_SatisfiesThePublishedSchema(t *testing.T) {
	t.Parallel()
	s := publishedtest.Load(t).Need(t, "capabilities.schema.json")
	// The published schema does not know aiProviders.selfHosted.
	hosted := func(_ *discovery.Config, d *dispatcher) { d.can.SelfHosted = nil }
	for name, r := range map[string]*rig{
		"plain":        newRig(hosted),
		"with seams":   newRig(seamed, hosted),
		"bare":         newRig(bare),
		"with prompts": newRig(templated, hosted),
		"audited":      newRig(audited, hosted),
	} {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(r.bytes(t)))
		require.NoError(t, err)
		require.NoError(t, s.Validate(v), name)
	}
}

func TestDocument_HasItsMembersAtTheRoot(t *testing.T) {
	t.Parallel()
	root := newRig().root(t)
	require.Equal(t, "1.1", root["protocolVersion"])
	require.Equal(t, []any{"1.1"}, root["protocolVersions"])
	require.EqualValues(t, 1, root["engineVersion"])
	require.EqualValues(t, 2, root["eventLogSchemaVersion"])
	require.Equal(t, []any{"rest", "grpc"}, root["supportedTransports"])
	require.NotContains(t, root, "capabilities", "no wrapper")
	require.Equal(t, map[string]any{
		"clarificationRounds": 3.0, "schemaRounds": 2.0, "envelopesPerTurn": 5.0, "maxNodeExecutions": 100.0,
		"maxRunDurationMs": 86400000.0, "maxRequestBodyBytes": 1048576.0,
	}, root["limits"])
}

func TestDocument_ListsEveryKindWithItsVersion(t *testing.T) {
	t.Parallel()
	root := newRig().root(t)
	kinds := []any{"clarification.request", "error", "schema.request", "schema.response", "vendor.acme.order"}
	require.Equal(t, kinds, root["supportedEnvelopes"])
	versions, ok := root["schemaVersions"].(map[string]any)
	require.True(t, ok)
	require.Len(t, versions, len(kinds))
	for _, k := range kinds {
		require.EqualValues(t, 1, versions[k.(string)])
	}
}

func TestDocument_NeverHoldsTheTokenEdit(t *testing.T) {
	t.Parallel()
	for _, r := range []*rig{newRig(), newRig(seamed), newRig(bare)} {
		require.NotContains(t, string(r.bytes(t)), `"edit"`)
	}
}

func TestDocument_DescribesInterrupts(t *testing.T) {
	t.Parallel()
	root := newRig().root(t)
	require.Equal(t, map[string]any{"pauseResume": map[string]any{
		"supported":     true,
		"drainPolicies": []any{"immediate", "drain-current-node"},
	}}, root["runs"])
	require.Equal(t, map[string]any{
		"supported": true, "kinds": []any{"approval", "clarification", "external-event", "custom", "low-confidence"},
		"profiles": []any{
			"openwop-interrupt-quorum", "openwop-interrupt-auth-required",
			"openwop-interrupt-external-event", "openwop-interrupt-cascade-cancel",
		},
	}, root["interrupts"])
	require.Equal(t, map[string]any{"approverRouting": map[string]any{
		"supported": true,
		"refKinds":  []any{"group", "role"},
	}}, root["interrupt"])
	require.Equal(t, map[string]any{
		"supported": true, "modes": []any{"replay", "branch"}, "sideEffectSuppression": "recorded-outcome",
	}, root["replay"])
}

// OpenWOP host contract §1.4: the block promises seeding of children, so it needs the node type that
// does it.
func TestDocument_HasSubWorkflowsWithTheirNodeType(t *testing.T) {
	t.Parallel()
	r := newRig()
	r.dispatcher.can.NodeTypes = append(r.dispatcher.can.NodeTypes, &dispatcherv1.NodeType{TypeId: "core.subWorkflow"})
	require.Equal(t, map[string]any{"inputMapping": true}, r.root(t)["subWorkflow"])
}

func TestDocument_OmitsUnsupportedFamilies(t *testing.T) {
	t.Parallel()
	for _, r := range []*rig{newRig(), newRig(seamed)} {
		root := r.root(t)
		for _, absent := range []string{
			"webhooks", "secrets", "credentials", "feedback", "subWorkflow", "modelCapabilities",
			"production", "authorization", "memory", "mcp", "a2a", "sandbox", "budget", "dispatch",
			"orchestrator", "dataResidency",
		} {
			require.NotContains(t, root, absent)
		}
		require.NotContains(t, string(r.bytes(t)), `"supported":false`)
	}
	require.NotContains(t, newRig(bare).root(t), "aiProviders")
	plain := newRig().root(t)
	require.NotContains(t, plain, "testing")
	require.NotContains(t, plain, "fixtures")
}

// policies is the document's provider policy (OpenWOP host contract §5.8).
var policies = map[string]any{
	"modes":  []any{"disabled", "optional", "required", "restricted"},
	"scopes": []any{"tenant"},
}

func TestDocument_NamesProvidersAndWhichAreTheHostsOwn(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]any{
		"supported":  []any{"local", "sample"},
		"selfHosted": []any{"local"},
		"policies":   policies,
	}, newRig().root(t)["aiProviders"])
}

func TestDocument_AdvertisesOnlyFixturesItCanExecute(t *testing.T) {
	t.Parallel()
	r := newRig(seamed)
	root := r.root(t)
	require.Equal(t, []any{"conformance-noop", "openwop-smoke-identity"}, root["fixtures"])
	require.Equal(t, map[string]any{
		"mockProviders": []any{"stream-text", "error"},
		"testKeyPrefix": "hk_test_",
	}, root["testing"])
	require.Len(t, r.dispatcher.lists, 2)
	require.Equal(t, "mine", r.dispatcher.lists[1].GetAfter(), "pages are followed")
}

func TestDocument_ReliabilityMeetsItsFamilysMusts(t *testing.T) {
	t.Parallel()
	family, _ := newRig().root(t)["envelopes"].(map[string]any)
	reliability, ok := family["reliability"].(map[string]any)
	require.True(t, ok)
	require.Equal(t, true, reliability["supported"])
	events, _ := reliability["events"].([]any)
	require.True(t, slices.Contains(events, any("envelope.retry.exhausted")))
	require.True(t, slices.Contains(events, any("envelope.refusal")))
	require.EqualValues(t, 3, reliability["maxRetryAttempts"])
}

func TestDocument_KeepsItsTagWhileNothingChanges(t *testing.T) {
	t.Parallel()
	r, replica := newRig(), newRig()
	first, err := r.Document(t.Context())
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(first.ETag, `"`) && strings.HasSuffix(first.ETag, `"`))
	r.clock.t = r.clock.t.Add(time.Hour)
	again, err := r.Document(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, again)
	other, err := replica.Document(t.Context())
	require.NoError(t, err)
	require.Equal(t, first.ETag, other.ETag, "identical across replicas")
	r.dispatcher.can.MaxNodeExecutions++
	r.clock.t = r.clock.t.Add(time.Hour)
	changed, err := r.Document(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, first.ETag, changed.ETag)
}

func TestDocument_IsComputedOnceForAWhile(t *testing.T) {
	t.Parallel()
	r := newRig()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := r.Document(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, r.acceptor.asked)
	r.clock.t = r.clock.t.Add(time.Minute)
	r.bytes(t)
	require.Equal(t, 2, r.acceptor.asked)
}

func TestDocument_DoesNotCacheAFailure(t *testing.T) {
	t.Parallel()
	r := newRig()
	r.dispatcher.err = errors.New("down")
	_, err := r.Document(t.Context())
	require.ErrorIs(t, err, r.dispatcher.err)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "OpenWOP host contract §1.1: 503, whatever the cause")
	r.dispatcher.err = nil
	r.bytes(t)
}

// OpenWOP host contract §2.1: clients must find out whether to use TLS.
func TestDocument_ReportsTLSOfGRPC(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"grpc://127.0.0.1:9090":       "disabled",
		"grpcs://waybill.example:443": "required",
	} {
		r := newRig(func(c *discovery.Config, _ *dispatcher) { c.GRPCEndpoint = func() string { return endpoint } })
		got, ok := r.root(t)["grpc"].(map[string]any)
		require.True(t, ok)
		require.Equal(t, want, got["tls"])
		require.Equal(t, endpoint, got["endpoint"])
	}
}
