package model_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// OpenWOP envelope contract §5: if the schema has a reasoning member, the directive is a sentence
// of the prompt, the same on every attempt. Missing reasoning never rejects an answer.
func TestDirective_IsNeverAReasonToRefuse(t *testing.T) {
	t.Parallel()
	const place, none = `"reasoning":{"type":"string"},`, ``
	for name, tc := range map[string]struct {
		directive model.Directive
		schema    string
		says      string
	}{
		"mandatory":      {model.Mandatory, place, "Never leave it out"},
		"advisory":       {model.Advisory, place, "If it helps you"},
		"the default":    {"", place, "If it helps you"},
		"off":            {model.Off, place, ""},
		"no place":       {model.Mandatory, none, ""},
		"only in a text": {model.Mandatory, `"a":{"const":"reasoning"},`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scripts := newScripts()
			require.NoError(t, scripts.Program(t.Context(), "acme", "n", []mock.Entry{{Content: `{"valid":7}`}, {Content: `{"valid":true}`}}))
			s := &spy{Provider: mock.New(scripts)}
			reg, err := provider.NewRegistry(s)
			require.NoError(t, err)
			loop := model.New(model.Config{
				MaxAttempts: 2,
				Multiplier:  2,
				Timeout:     time.Second,
				Directive:   tc.directive,
				Defaults:    model.Defaults{Provider: "mock", Model: "m"},
			}, model.Deps{Models: reg, Schemas: schemas{}, Clock: time.Now})
			res := loop.Run(t.Context(), model.Task{
				Tenant: "acme", RunID: "r", TypeID: node.TypeStructuredOutput,
				Input: node.Input{
					NodeID: "n",
					Config: json.RawMessage(`{"outputSchema":{"type":"object","required":["valid"],"properties":{` + tc.schema + `"valid":{"type":"boolean"}}}}`),
				},
			}, &journal{})
			require.Nil(t, res.Err, "an answer without reasoning")
			require.Len(t, s.reqs, 2)
			require.Equal(t, s.reqs[0].System, s.reqs[1].System)
			if tc.says == "" {
				require.NotContains(t, s.reqs[0].System, "reasoning")
				return
			}
			require.Contains(t, s.reqs[0].System, tc.says)
		})
	}
}
