package model_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// partial is an output.chunk event with a partial payload.
type partial struct {
	Chunk        string
	IsLast       bool
	EnvelopeType string
	Payload      json.RawMessage
	Partial      *struct {
		IsPartial    bool
		Index, Total int
	}
}

// grow runs a node whose model streams a text in pieces, and returns its chunks and result.
func grow(t *testing.T, typeID, config string, size int, text string) (chunks []partial, res model.Result) {
	t.Helper()
	reg, err := provider.NewRegistry(&pieces{size: size, text: text})
	require.NoError(t, err)
	loop := model.New(model.Config{
		MaxAttempts: 1, Multiplier: 2, Timeout: 5 * time.Second,
		Defaults: model.Defaults{Provider: "pieces", Model: "m", MaxTokens: 100},
	}, model.Deps{
		Models: reg, Schemas: kindsOfForms, Scrubber: func(string, string, bool) model.Scrubber { return plain{} },
		Clock: func() time.Time { return time.Unix(1_700_000_000, 0) },
	})
	j := &journal{accept: acceptAll}
	res = loop.Run(t.Context(), model.Task{
		Tenant: "acme", RunID: "run_1", TypeID: typeID,
		Input: node.Input{NodeID: "n", Config: json.RawMessage(config), Ports: map[string]json.RawMessage{"prompt": json.RawMessage(`"go"`)}},
	}, j)
	require.NoError(t, res.Interrupted)
	for _, d := range j.drafts {
		if d.Type == wire.EventOutputChunk {
			var c partial
			require.NoError(t, json.Unmarshal(d.Payload, &c))
			chunks = append(chunks, c)
		}
	}
	return chunks, res
}

const formSchema = `{"type":"object","additionalProperties":false,"required":["title","level","items"],"properties":{
	"title":{"type":"string","maxLength":200},"level":{"enum":["low","high","highest"]},"code":{"type":"string","pattern":"^[A-Z]{3}$"},
	"items":{"type":"array","minItems":2,"items":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},"note":{"type":"string"}}}}}}`

const formAnswer = `{"title":"A long title that takes a while to be written, word by word","level":"highest","code":"ABC",` +
	`"items":[{"n":12345,"note":"the first of the items, with a note"},{"n":2,"note":"the second"},{"n":3,"note":"and the last of them all"}]}`

// The partials of an answer grow to it. Each one satisfies the schema, but for what is missing: no number,
// code or listed word is shown before it is complete.
func TestPartials_GrowToTheAnswer(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile("form", []byte(formSchema))
	require.NoError(t, err)
	growing, err := s.Growing()
	require.NoError(t, err)
	for _, wrap := range []string{"%", "```json\n%\n```", "<think>{\"title\":\"no\"}</think>\n%", "Here it is: %"} {
		for _, size := range []int{1, 3, 17} {
			text := strings.ReplaceAll(wrap, "%", formAnswer)
			chunks, res := grow(t, node.TypeStructuredOutput, `{"partials":true,"outputSchema":`+formSchema+`}`, size, text)
			require.Nil(t, res.Err)
			var all strings.Builder
			n, last := 0, 0
			for _, c := range chunks {
				all.WriteString(c.Chunk)
				if c.Partial == nil {
					require.Empty(t, c.Payload)
					continue
				}
				require.Equal(t, n, c.Partial.Index)
				require.True(t, c.Partial.IsPartial)
				require.Equal(t, -1, c.Partial.Total)
				require.Empty(t, growing.Validate(c.Payload), "%s", c.Payload)
				require.NotContains(t, string(c.Payload), `"no"`, "thinking is no part of the answer")
				for _, part := range []string{`"level":"high"`, `"n":123}`, `"n":1,`, `"code":"AB"`} {
					require.NotContains(t, string(c.Payload), part)
				}
				require.GreaterOrEqual(t, len(c.Payload), last, "it grows")
				n, last = n+1, len(c.Payload)
			}
			require.Equal(t, text, all.String(), "the text of the chunks is that of the answer")
			require.Greater(t, n, 4)
			require.JSONEq(t, formAnswer, string(res.Output.Ports["output"]))
		}
	}
}

func TestPartials_OfKinds(t *testing.T) {
	t.Parallel()
	title := strings.Repeat("word ", 40)
	for name, tc := range map[string]struct{ config, text, kind, last string }{
		"payload":      {`{"envelopeType":"vendor.x.task"}`, `{"title":"` + title + `"}`, "vendor.x.task", `{"title":"word `},
		"envelope":     {`{"envelopeType":"vendor.x.task"}`, `{"type":"vendor.x.task","payload":{"title":"` + title + `"}}`, "vendor.x.task", `{"title":"word `},
		"list":         {`{"envelopeType":"vendor.x.task","turn":"envelopes"}`, `{"envelopes":[{"type":"vendor.x.task","payload":{"title":"` + title + `"}}]}`, "vendor.x.task", `{"title":"word `},
		"contract":     {`{"envelopeContract":{"accepts":["vendor.x.task"]}}`, `{"envelopes":[{"type":"vendor.x.task","payload":{"title":"` + title + `"}}]}`, "vendor.x.task", `{"title":"word `},
		"a question":   {`{"envelopeType":"vendor.x.open"}`, `{"type":"clarification.request","payload":{"questions":[{"id":"q","question":"` + title + `"}]}}`, "", ""},
		"wrong":        {`{"envelopeType":"vendor.x.task"}`, `{"name":"` + title + `"}`, "", ""},
		"not declared": {`{"envelopeType":"vendor.x.task","partials":false}`, `{"title":"` + title + `"}`, "", ""},
	} {
		config := tc.config
		if !strings.Contains(config, "partials") {
			config = strings.Replace(config, "{", `{"partials":true,`, 1)
		}
		chunks, _ := grow(t, node.TypeCallPrompt, config, 5, tc.text)
		var shown []partial
		for _, c := range chunks {
			if c.Partial != nil {
				shown = append(shown, c)
			}
		}
		if tc.last == "" {
			require.Empty(t, shown, name)
			continue
		}
		require.NotEmpty(t, shown, name)
		for _, c := range shown {
			require.Equal(t, tc.kind, c.EnvelopeType, name)
			require.True(t, strings.HasPrefix(string(c.Payload), tc.last), "%s: %s", name, c.Payload)
		}
	}
}

// The partials of a long answer take a few times its size, and an answer that is no JSON has none.
func TestPartials_AreBounded(t *testing.T) {
	t.Parallel()
	config := `{"partials":true,"outputSchema":{"type":"array","items":{"type":"string"}}}`
	sizes := []int{10, 1000, 20_000}
	if testing.Short() { // the race detector makes this ten times as slow
		sizes = sizes[:2]
	}
	for _, n := range sizes {
		text := "[" + strings.Repeat(`"a word of the list",`, n) + `"end"]`
		chunks, res := grow(t, node.TypeStructuredOutput, config, 7, text)
		require.Nil(t, res.Err)
		sum, count := 0, 0
		for _, c := range chunks {
			if c.Partial != nil {
				sum, count = sum+len(c.Payload), count+1
			}
		}
		require.LessOrEqual(t, sum, 4<<10+8*min(len(text), 64<<10+7))
		require.Positive(t, count)
	}
	chunks, _ := grow(t, node.TypeStructuredOutput, config, 7, strings.Repeat("no [1] {x} ", 1000))
	for _, c := range chunks {
		require.Nil(t, c.Partial)
	}
}

func TestPartials_OfAnswersThatHaveNone(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{"partials":true}`: "/config/partials: an answer in text has none; want /config/envelopeType, /config/envelopeContract or /config/outputSchema",
		`{"partials":true,"envelopeType":"vendor.x.task","expectsStreaming":false}`: "/config/partials: want /config/expectsStreaming true, or absent",
	} {
		_, res := grow(t, node.TypeCallPrompt, config, 7, "{}")
		require.NotNil(t, res.Err, config)
		require.Equal(t, want, res.Err.Message)
	}
}
