package anthropic_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/anthropic"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
	double "waybill.dev/waybill/test/double/anthropic"
)

// Events of a stream, in short.
const (
	evStart = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-6","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"output_tokens":1}}}`
	evText  = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	evA     = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`
	evShut  = `{"type":"content_block_stop","index":0}`
	evEnd   = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":4}}`
	evStop  = `{"type":"message_stop"}`
)

// stream writes events as the vendor does.
func stream(events ...string) double.Reply {
	var b strings.Builder
	for _, e := range events {
		kind, _, _ := strings.Cut(strings.TrimPrefix(e, `{"type":"`), `"`)
		b.WriteString("event: " + kind + "\ndata: " + e + "\n\n")
	}
	return double.Reply{ContentType: "text/event-stream", Raw: b.String()}
}

func TestCall_ReadsTheVendorsStream(t *testing.T) {
	t.Parallel()
	res, _ := newRig(t, nil).call(t, ask(), stream(evStart, evText, evA, evA, evShut, evEnd, evStop))
	require.Equal(t, "aa", res.Text)
	require.Equal(t, provider.Usage{
		InputTokens:      3,
		OutputTokens:     4,
		TotalTokens:      7,
		CacheReadTokens:  2,
		CacheWriteTokens: 1,
		CacheApart:       true,
		Known:            true,
	}, res.Usage, "the end has the output's tokens alone")
}

func TestCall_BelievesNoUsageThatCannotBe(t *testing.T) {
	t.Parallel()
	end := strings.Replace(evEnd, `"output_tokens":4`, `"input_tokens":-5,"output_tokens":9223372036854775807,"cache_read_input_tokens":null`, 1)
	res, _ := newRig(t, nil).call(t, ask(), stream(evStart, evText, evA, evShut, end, evStop))
	require.Equal(t, provider.Usage{
		InputTokens:      3, // of the start
		OutputTokens:     1 << 40,
		TotalTokens:      1<<40 + 3,
		CacheReadTokens:  2,
		CacheWriteTokens: 1,
		CacheApart:       true,
		Known:            true,
	}, res.Usage)
}

func TestCall_ReadsAnInputThatComesWhole(t *testing.T) {
	t.Parallel()
	block := `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"answer","input":{"z":"x","a":12345678901234567890}}}`
	res, _ := newRig(t, nil).call(t, tool.ask(), stream(evStart, block, evShut, strings.Replace(evEnd, "end_turn", "tool_use", 1), evStop))
	require.Equal(t, `{"z":"x","a":12345678901234567890}`, res.Text)
	require.Equal(t, provider.StopClean, res.Stop)
}

// An answer whose blocks are interleaved, or whose end is missing, is refused.
func TestCall_RefusesAStreamOutOfOrder(t *testing.T) {
	t.Parallel()
	for name, events := range map[string][]string{
		"a start within":     {evStart, evText, evStart},
		"of another block":   {evStart, evText, strings.Replace(evA, `"index":0`, `"index":1`, 1)},
		"a block in a block": {evStart, evText, evText},
		"a stop of nothing":  {evStop},
		"a block after all":  {evStart, evText, evA, evShut, evEnd, strings.Replace(evText, `"index":0`, `"index":1`, 1)},
		"input of no tool":   {evStart, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`},
		"text in a tool": {
			evStart,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`,
			evA,
		},
	} {
		e := newRig(t, nil).fail(t, ask(), stream(events...))
		require.Equal(t, provider.CodeUnavailable, e.Code, name)
		require.Contains(t, e.Message, "out of any order", name)
	}
	for name, events := range map[string][]string{
		"cut in a block":    {evStart, evText, evA},
		"cut after a block": {evStart, evText, evA, evShut},
		"cut before an end": {evStart, evText, evA, strings.Replace(evEnd, `"end_turn"`, "null", 1)},
		"the start alone":   {evStart},
	} {
		e := newRig(t, nil).fail(t, ask(), stream(events...))
		require.True(t, e.Retryable, name)
		require.Contains(t, e.Message, "before it was complete", name)
	}
}

func TestCall_BoundsTheNumberOfCalls(t *testing.T) {
	t.Parallel()
	many := make([]double.ToolCall, 129)
	for i := range many {
		many[i] = double.ToolCall{Name: "f", Input: "{}"}
	}
	e := newRig(t, nil).fail(t, ask(), double.Reply{ToolCalls: many})
	require.Equal(t, provider.CodeUnavailable, e.Code)
}

// Whatever a server streams, the call ends with an answer that keeps the port's
// promises or with a typed error.
func FuzzCall(f *testing.F) {
	f.Add(stream(evStart, evText, evA, evShut, evEnd, evStop).Raw, true)
	f.Add(stream(evStart, evText, evA, evEnd).Raw, false)
	for _, seed := range []string{
		"", "data: {}\n\n", "event: x\ndata: null\n\n",
		"event: error\ndata: {\"error\":{\"type\":7}}\n\n", "event: error\ndata: {\n\n", "\x00\n\n",
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":7}\n\n",
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		stream(`{"type":"content_block_start","index":-1,"content_block":{"type":"tool_use","input":[1]}}`).Raw,
	} {
		f.Add(seed, false)
		f.Add(stream(evStart).Raw+seed, true)
	}
	s := double.New(double.Options{})
	p, err := anthropic.New(anthropic.Config{BaseURL: s.URL(), APIKey: key, Timeout: time.Second})
	require.NoError(f, err)
	f.Cleanup(func() {
		p.Close()
		s.Close()
	})
	f.Fuzz(func(t *testing.T, stream string, viaTool bool) {
		req := ask()
		if viaTool {
			req = tool.ask()
		}
		s.Enqueue(double.Reply{ContentType: "text/event-stream", Raw: stream})
		var pieces []provider.Delta
		res, err := p.Call(t.Context(), req, func(d provider.Delta) error {
			pieces = append(pieces, d)
			return nil
		})
		if err != nil {
			_, ok := provider.As(err)
			require.True(t, ok, "%v", err)
			return
		}
		providertest.Check(t, res, pieces)
	})
}
