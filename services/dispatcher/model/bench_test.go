package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// promptly is a model that answers immediately.
type promptly struct{ text string }

func (promptly) ID() string { return "promptly" }

func (p promptly) Call(_ context.Context, _ provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	c := provider.NewCollector("m", emit)
	if err := c.Add(provider.Delta{Text: p.text}); err != nil {
		return provider.Result{}, err
	}
	return c.Finish(provider.Result{Stop: provider.StopClean}, "stop")
}

const orderSchema = `{"type":"object","required":["customer","items"],"properties":{"customer":{"type":"string","minLength":1},` +
	`"items":{"type":"array","minItems":1,"items":{"type":"object","required":["sku","quantity"],"additionalProperties":false,` +
	`"properties":{"sku":{"type":"string","pattern":"^[A-Z]+-[0-9]+$"},"quantity":{"type":"integer","minimum":1},"note":{"type":"string","maxLength":200}}}}}}`

// lamps returns a value of the schema with n items of about 100 bytes each.
func lamps(n int) string {
	item := `{"sku":"LAMP-%d","quantity":%d,"note":"in red, if there are any left, and by Friday if you can"}`
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(item, i, i+1)
	}
	return `{"customer":"Jane Doe","items":[` + strings.Join(items, ",") + `]}`
}

// BenchmarkRun_Value measures the host's part of a model call: a prompt of 0.5 KB and an answer of
// 2 KB that is validated by a schema.
func BenchmarkRun_Value(b *testing.B) {
	reg, err := provider.NewRegistry(promptly{lamps(20)})
	require.NoError(b, err)
	loop := model.New(model.Config{
		MaxAttempts: 3,
		Multiplier:  2,
		Timeout:     time.Minute,
		Defaults:    model.Defaults{Provider: "promptly", Model: "m", MaxTokens: 100},
	}, model.Deps{
		Models:   reg,
		Schemas:  schemas{},
		Scrubber: func(string, string, bool) model.Scrubber { return plain{} },
		Clock:    time.Now,
	})
	task := model.Task{
		Tenant: "acme", RunID: "run_1", TypeID: node.TypeStructuredOutput, Input: node.Input{
			NodeID:    "n",
			Config:    json.RawMessage(fmt.Sprintf(`{"prompt":"{{question}}","maxTokens":2000,"outputSchema":%s}`, orderSchema)),
			Variables: map[string]json.RawMessage{"question": wire.AppendString(nil, fmt.Sprintf("%500d", 1))},
		},
	}
	b.ReportAllocs()
	for b.Loop() {
		res := loop.Run(b.Context(), task, &journal{})
		if res.Err != nil {
			b.Fatal(res.Err)
		}
	}
}
