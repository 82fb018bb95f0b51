package cost_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/cost"
)

// OpenWOP host contract §10.2: exactly these names, and primitive values only.
func TestSanitize_KeepsListedAttributesOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ given, want string }{
		"all": {
			`{"openwop.cost.tokens.input":100,"openwop.cost.tokens.output":50,"openwop.cost.tokens.total":150,"openwop.cost.usd":0.00123,
			 "openwop.cost.currency":"usd","openwop.cost.estimated":true,"openwop.cost.provider":"anthropic"}`,
			`{"openwop.cost.tokens.input":100,"openwop.cost.tokens.output":50,"openwop.cost.tokens.total":150,"openwop.cost.usd":0.00123,
			 "openwop.cost.currency":"usd","openwop.cost.estimated":true,"openwop.cost.provider":"anthropic"}`,
		},
		"another name":     {`{"openwop.cost.evil":"x","openwop.cost.leaked_token":"sk-1","openwop.cost.usd":1}`, `{"openwop.cost.usd":1}`},
		"another case":     {`{"openwop.cost.USD":1}`, `null`},
		"not a primitive":  {`{"openwop.cost.usd":{"a":1},"openwop.cost.provider":["x"]}`, `null`},
		"of another kind":  {`{"openwop.cost.usd":"1","openwop.cost.tokens.input":1.5,"openwop.cost.estimated":"yes"}`, `null`},
		"negative":         {`{"openwop.cost.usd":-1,"openwop.cost.tokens.input":-1}`, `null`},
		"null":             {`{"openwop.cost.usd":null,"openwop.cost.tokens.input":null,"openwop.cost.estimated":null}`, `null`},
		"text in a name":   {`{"openwop.cost.provider":"sk-ant-CANARY","openwop.cost.currency":"dollars"}`, `null`},
		"not an object":    {`[1]`, `null`},
		"zeros are values": {`{"openwop.cost.tokens.input":0,"openwop.cost.estimated":false}`, `{"openwop.cost.tokens.input":0,"openwop.cost.estimated":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(cost.Sanitize(json.RawMessage(c.given)))
			require.NoError(t, err)
			require.JSONEq(t, c.want, string(got))
		})
	}
}

func TestSanitize_IsIdempotent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{cost.Input, cost.Output, cost.Total, cost.USD, cost.Currency, cost.Estimated, cost.Provider, "openwop.cost.evil"}
		given := map[string]any{}
		for _, name := range names {
			given[name] = rapid.SampledFrom([]any{nil, true, 1, -1, 0.5, "usd", "openai", "A B", []int{1}}).Draw(t, name)
		}
		raw, err := json.Marshal(given)
		require.NoError(t, err)
		kept := cost.Sanitize(raw)
		require.NotContains(t, kept, "openwop.cost.evil")
		again, err := json.Marshal(kept)
		require.NoError(t, err)
		require.Equal(t, kept, cost.Sanitize(again))
	})
}

func TestDollars_IgnoresOtherCurrencies(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]bool{
		`{"openwop.cost.usd":1}`: true, `{"openwop.cost.usd":1,"openwop.cost.currency":"USD"}`: true,
		`{"openwop.cost.usd":1,"openwop.cost.currency":"eur"}`: false, `{"openwop.cost.tokens.input":1}`: false,
	} {
		_, ok := cost.Sanitize(json.RawMessage(given)).Dollars()
		require.Equal(t, want, ok, given)
	}
}
