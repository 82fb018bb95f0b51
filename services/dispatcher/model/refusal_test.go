package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// declining is a model that refuses with a text and a category.
type declining struct{ text, category string }

func (declining) ID() string { return "mock" }

func (d declining) Call(context.Context, provider.Request, func(provider.Delta) error) (provider.Result, error) {
	return provider.Result{
		RefusalText:    d.text,
		SafetyCategory: d.category,
		Stop:           provider.StopRefused,
		RawStop:        "refusal",
		Model:          "m",
	}, nil
}

const secret = "sk-live-help-4f9d2c71ab"

// vault is a scrubber that removes one secret.
type vault struct{ down error }

func (v vault) Open(context.Context) (model.Scrub, error) { return &holding{}, v.down }

// holding holds text back while it may begin the secret.
type holding struct{ held string }

func (h *holding) Push(piece string, last bool) (string, error) {
	h.held = strings.ReplaceAll(h.held+piece, secret, "[REDACTED:k]")
	n := max(0, len(h.held)-len(secret)+1)
	if last {
		n = len(h.held)
	}
	out := h.held[:n]
	h.held = h.held[n:]
	return out, nil
}

func (*holding) Close() {}

// refuses runs a node with a prompt and a refusing model. It returns the refusal event and the
// result.
func refuses(t require.TestingT, ctx context.Context, prompt string, d declining, withhold bool, v vault) (text *string, category *string, raw string, res model.Result) {
	reg, err := provider.NewRegistry(d)
	require.NoError(t, err)
	loop := model.New(model.Config{
		MaxAttempts:       3,
		Multiplier:        2,
		Timeout:           time.Second,
		WithholdsRefusals: withhold,
		Defaults:          model.Defaults{Provider: "mock", Model: "m", MaxTokens: 1},
	}, model.Deps{
		Models:   reg,
		Schemas:  schemas{},
		Clock:    time.Now,
		Scrubber: func(string, string, bool) model.Scrubber { return v },
	})
	content, err := json.Marshal([]map[string]any{{"role": "user", "content": []any{map[string]any{
		"type": "text",
		"text": prompt,
	}}}})
	require.NoError(t, err)
	res = loop.Run(ctx, model.Task{RunID: "r", TypeID: node.TypeCallPrompt, Input: node.Input{
		NodeID: "n",
		Config: json.RawMessage(`{"expectsStreaming":false}`),
		Ports:  map[string]json.RawMessage{"messages": content},
	}}, &journal{})
	for _, e := range res.Drafts {
		if e.Type != wire.EventEnvelopeRefusal {
			continue
		}
		var p struct{ RefusalText, SafetyCategory *string }
		require.NoError(t, json.Unmarshal(e.Payload, &p))
		return p.RefusalText, p.SafetyCategory, string(e.Payload), res
	}
	return nil, nil, "", res
}

// OpenWOP envelope contract §14.8, §15.1: a recorded refusal has no secrets and no words of the
// prompt.
func TestRefusal_RepeatsNothingOfThePrompt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ prompt, refusal, want string }{
		"its own words":          {"Name the moons.", "I can't help with that.", "I can't help with that."},
		"a quotation":            {"Describe the purple zeppelin of Ann", `I can't describe "the purple zeppelin of Ann".`, `I can't [REDACTED] "the [REDACTED] of [REDACTED]".`},
		"in another form":        {"How to BOMB a run", "Bombs, bombing and running are not for me.", "[REDACTED] and [REDACTED] are not for me."},
		"an address":             {"mail jo.doe+x@acme.example", "I won't write to jo.doe+x@acme.example now.", "I won't write to [REDACTED] now."},
		"numbers":                {"card 4111 1111 1111 1234, room 7", "No card 4111-1111, no 7, no 8.", "No [REDACTED], no [REDACTED], no 8."},
		"short words":            {"Bob has HIV", "Bob and HIV: no.", "[REDACTED] and [REDACTED]: no."},
		"another script":         {"如何制造炸弹", "我不能帮助制造炸弹。", "我不能帮助[REDACTED]。"},
		"cyrillic":               {"Сделай бомбу", "Не буду делать бомбы.", "Не буду делать [REDACTED]."},
		"a secret":               {"hello", "Your key " + secret + " is bad.", "Your key [REDACTED:k] is bad."},
		"a secret of its words":  {"help live sk", "Key " + secret + ".", "Key [REDACTED:k]."},
		"a marker of its words":  {"redacted k", "Is it [REDACTED:k]?", "Is it [REDACTED:k]?"},
		"nothing":                {"hello", "", ""},
		"what is no text at all": {"hello", "no\xff!", "no\uFFFD!"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, _, _, res := refuses(t, t.Context(), tc.prompt, declining{text: tc.refusal}, false, vault{})
			require.Equal(t, "envelope_refusal", res.Err.Code)
			if tc.want == "" {
				require.Nil(t, text)
				return
			}
			require.NotNil(t, text)
			require.Equal(t, tc.want, *text)
		})
	}
}

// The same for any prompt, repeated in any way.
func TestRefusal_RepeatsNoPromptWhatever(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[a-zà-ÿ0-9]{5,12}`)
	rapid.Check(t, func(rt *rapid.T) {
		words := rapid.SliceOfN(word, 1, 8).Draw(rt, "words")
		around := rapid.SampledFrom([]string{" ", ", ", "-", "_", "\n", "@", " because of "}).Draw(rt, "between")
		text, _, _, _ := refuses(rt, t.Context(), strings.Join(words, " "), declining{text: "No: " + strings.ToUpper(strings.Join(words, around)) + "."}, false, vault{})
		require.NotNil(rt, text)
		for _, w := range words {
			require.NotContains(rt, strings.ToLower(*text), w)
		}
	})
}

func TestRefusal_IsWithheldWhereTheOperatorSaysSo(t *testing.T) {
	t.Parallel()
	text, category, raw, res := refuses(t, t.Context(), "hello", declining{"I will not", "violence"}, true, vault{})
	require.Nil(t, text)
	require.Contains(t, raw, `"refusalText":null`)
	require.Equal(t, "violence", *category, "the vendor's category is kept")
	require.Equal(t, "envelope_refusal", res.Err.Code)
}

// A vendor's refusal can have nine megabytes, which exceeds a frame of the log.
func TestRefusal_IsBounded(t *testing.T) {
	t.Parallel()
	text, category, _, _ := refuses(t, t.Context(), "hello", declining{strings.Repeat("é", 4094) + "xyz" + secret + strings.Repeat(" no", 3<<20), strings.Repeat("c", 257)}, false, vault{})
	require.LessOrEqual(t, len(*text), 8192)
	require.True(t, strings.HasPrefix(*text, "éé"))
	require.NotContains(t, *text, "sk-", "not even the beginning of a secret")
	require.Nil(t, category)
}

// Without the redactor the node is interrupted: it records nothing and does not fail.
func TestRefusal_WaitsForTheRedactor(t *testing.T) {
	t.Parallel()
	down := errors.New("the redactor is down")
	_, _, raw, res := refuses(t, t.Context(), "hello", declining{text: "I will not"}, false, vault{down})
	require.ErrorIs(t, res.Interrupted, down)
	require.Nil(t, res.Err)
	require.Empty(t, raw)
}
