package completion_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/services/dispatcher/completion"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/services/dispatcher/provider/sample"
)

// The active model is the node's, else the run's, else the host's; it is evaluated
// as a model of a provider that is there (OpenWOP envelope contract §16.3).
func TestGate_EvaluatesTheActiveModel(t *testing.T) {
	t.Parallel()
	reg, err := provider.NewRegistry(sample.New(0), mock.New(mock.NewMemory()), mute{})
	require.NoError(t, err)
	loop := completion.New(completion.Config{Timeout: time.Second, Defaults: completion.Defaults{Provider: "sample", Model: "sample-1"}}, completion.Deps{Models: reg})
	for name, tc := range map[string]struct {
		config, configurable, requires string
		active                         modelgate.Model
		route                          modelgate.Route
	}{
		"the host's":                            {`{}`, ``, "structured-output", modelgate.Model{Provider: "sample", Model: "sample-1"}, modelgate.Dispatch},
		"the host's lacks it":                   {`{}`, ``, "reasoning", modelgate.Model{Provider: "sample", Model: "sample-1"}, modelgate.Refuse},
		"the run's":                             {`{}`, `{"ai.provider":"mock","ai.model":"x"}`, "reasoning", modelgate.Model{Provider: "mock", Model: "x"}, modelgate.Dispatch},
		"the run's, nested":                     {`{}`, `{"ai":{"provider":"mock","model":"x"}}`, "reasoning", modelgate.Model{Provider: "mock", Model: "x"}, modelgate.Dispatch},
		"the node's before the run's":           {`{"provider":"sample","model":"s"}`, `{"ai.provider":"mock","ai.model":"x"}`, "reasoning", modelgate.Model{Provider: "sample", Model: "s"}, modelgate.Refuse},
		"a provider that vouches for nothing":   {`{"provider":"mute","model":"m"}`, ``, "structured-output", modelgate.Model{Provider: "mute", Model: "m"}, modelgate.Refuse},
		"a provider that is not there":          {`{"provider":"ghost","model":"m"}`, ``, "structured-output", modelgate.Model{Provider: "ghost", Model: "m"}, modelgate.Refuse},
		"a config that is none: the host's own": {`7`, ``, "structured-output", modelgate.Model{Provider: "sample", Model: "sample-1"}, modelgate.Dispatch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs := modelgate.Needs{Required: []string{tc.requires}, Fallback: &modelgate.Model{Provider: "mock", Model: "m"}}
			active, o := loop.Gate(needs, node.Input{Config: json.RawMessage(tc.config), Configurable: json.RawMessage(tc.configurable)})
			require.Equal(t, tc.active, active)
			require.Equal(t, tc.route, o.Route)
			require.False(t, o.FallbackAttempted, "this host swaps no model")
		})
	}
}

// mute is a provider that says nothing of its models.
type mute struct{ provider.Provider }

func (mute) ID() string { return "mute" }
