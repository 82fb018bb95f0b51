package model_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// pieces is a model that streams its answer in pieces of a size.
type pieces struct {
	size  int
	text  string
	calls []provider.ToolCall
}

func (p *pieces) ID() string { return "pieces" }

func (p *pieces) Call(_ context.Context, _ provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	c := provider.NewCollector("m", emit)
	for text := p.text; text != ""; {
		n := min(p.size, len(text))
		if err := c.Add(provider.Delta{Text: text[:n]}); err != nil {
			return provider.Result{}, err
		}
		text = text[n:]
	}
	if len(p.calls) > 0 {
		if err := c.Add(provider.Delta{ToolCalls: p.calls}); err != nil {
			return provider.Result{}, err
		}
	}
	return c.Finish(provider.Result{Stop: provider.StopClean}, "stop")
}

// capped is a host with a limit for inline assets.
type capped struct {
	schemas

	limit int
}

func (c capped) Limits(ctx context.Context) (model.Limits, error) {
	l, err := c.schemas.Limits(ctx)
	l.MaxInlineBytes = c.limit
	return l, err
}

// streamed runs a node that records the answer while it arrives.
func streamed(t *testing.T, config string, p *pieces) (chunks []string, events string, taken []byte) {
	t.Helper()
	reg, err := provider.NewRegistry(p)
	require.NoError(t, err)
	loop := model.New(model.Config{
		MaxAttempts: 1,
		Multiplier:  2,
		Timeout:     5 * time.Second,
		Defaults:    model.Defaults{Provider: "pieces", Model: "m", MaxTokens: 100},
	}, model.Deps{
		Models: reg, Schemas: capped{limit: 90}, Scrubber: func(string, string, bool) model.Scrubber { return plain{} },
		Clock: func() time.Time { return time.Unix(1_700_000_000, 0) },
	})
	j := &journal{accept: func(req model.AcceptRequest) (model.Outcome, error) {
		taken = req.Envelope
		return acceptAll(req)
	}}
	res := loop.Run(t.Context(), model.Task{
		Tenant: "acme", RunID: "run_1", TypeID: node.TypeCallPrompt,
		Input: node.Input{
			NodeID: "n",
			Config: json.RawMessage(config),
			Ports:  map[string]json.RawMessage{"prompt": json.RawMessage(`"paint"`)},
		},
	}, j)
	require.NoError(t, res.Interrupted)
	if res.Err != nil {
		return nil, res.Err.Code + ": " + res.Err.Message, nil
	}
	var all strings.Builder
	for _, d := range j.drafts {
		all.Write(d.Payload)
		if d.Type == wire.EventOutputChunk {
			var c struct {
				Chunk string
			}
			require.NoError(t, json.Unmarshal(d.Payload, &c))
			chunks = append(chunks, c.Chunk)
		}
	}
	return chunks, all.String(), taken
}

// OpenWOP envelope contract §17: no event contains an asset above the limit, not even a streamed
// chunk.
func TestStream_ShowsNoAssetAboveTheInlineCap(t *testing.T) {
	t.Parallel()
	const config = `{"prompt":"paint","envelopeContract":{"accepts":["media.image"]}}`
	for _, size := range []int{1, 7, 64, 100_000} {
		for n, shown := range map[int]bool{90: true, 91: false, 5000: false} {
			data := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("picture", n)[:n]))
			text := fmt.Sprintf(`{"type":"media.image","payload":{"alt":"a red lamp","base64":%q,"bytes":%d}}`, data, n)
			chunks, events, taken := streamed(t, config, &pieces{size: size, text: text})
			require.Contains(t, string(taken), data, "the accept pipeline receives the whole asset")
			all := strings.Join(chunks, "")
			if shown {
				require.Equal(t, text, all)
				continue
			}
			require.NotContains(t, events, data[:40])
			require.Equal(t, strings.Replace(text, data, "[omitted: an asset of more than 90 bytes]", 1), all)
			if size < 64 {
				require.Greater(t, len(chunks), 8, "other text still streams")
			}
			require.NotContains(t, chunks[:len(chunks)-1], "", "no empty events for omitted text")
		}
	}
}

func TestStream_ShowsNoAssetInTheArgumentsOfATool(t *testing.T) {
	t.Parallel()
	data := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("picture", 100)))
	p := &pieces{
		size:  10,
		text:  `{"a":1}`,
		calls: []provider.ToolCall{{ID: "c", Name: "paint", Arguments: `{"base64":"` + data + `"}`}},
	}
	_, events, _ := streamed(t, `{"prompt":"paint","envelopeType":"vendor.x.ticket"}`, p)
	require.Contains(t, events, `"name":"paint"`)
	require.NotContains(t, events, data[:40])
	require.Contains(t, p.calls[0].Arguments, data, "the model's answer is unchanged")
}

func TestStream_OfATextIsTheTextAsItIs(t *testing.T) {
	t.Parallel()
	text := `{"base64":"` + strings.Repeat("A", 400) + `"}`
	chunks, _, _ := streamed(t, `{"prompt":"say"}`, &pieces{size: 9, text: text})
	require.Equal(t, text, strings.Join(chunks, ""))
}

// A frame has 8 MiB. An answer that exceeds it fails the node without a retry, which would cost
// another call.
func TestAnswer_ThatCannotBeRecordedFailsTheNode(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	const envelopes, text = `"envelopeContract":{"accepts":["media.image"]}`, `"topP":1`
	image := `{"type":"media.image","payload":{"base64":"` + strings.Repeat("A", 4<<20) + `","bytes":3145728}}`
	for name, tc := range map[string]struct {
		config, answer string
		fits           bool
	}{
		"text at the bound":         {text, strings.Repeat("x", 2<<20-200), true},
		"text above it":             {text, strings.Repeat("x", 2<<20), false},
		"text that JSON makes long": {text, strings.Repeat("\x01", 1<<20), false},
		"a large asset":             {envelopes, image, true},
		"the same as text":          {text, image, false},
		"text next to an asset":     {envelopes, strings.Repeat("x", 2<<20) + image, false},
	} {
		for _, streams := range []bool{true, false} {
			for _, size := range []int{64 << 10, 16 << 20} {
				_, events, _ := streamed(t, fmt.Sprintf(`{"prompt":"say",%s,"expectsStreaming":%t}`, tc.config, streams), &pieces{
					size: size,
					text: tc.answer,
				})
				require.Equal(t, tc.fits, !strings.HasPrefix(events, provider.CodeContentTooLong), "%s: %.200s", name, events)
			}
		}
	}
}

// patient is a model that sends the second piece of its answer after the first is recorded.
type patient struct{ shown chan struct{} }

func (patient) ID() string { return "pieces" }

func (p patient) Call(ctx context.Context, _ provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	c := provider.NewCollector("m", emit)
	if err := c.Add(provider.Delta{Text: "Hello, w"}); err != nil {
		return provider.Result{}, err
	}
	select {
	case <-p.shown:
	case <-ctx.Done():
		return provider.Result{}, ctx.Err()
	}
	if err := c.Add(provider.Delta{Text: "orld"}); err != nil {
		return provider.Result{}, err
	}
	return c.Finish(provider.Result{Stop: provider.StopClean}, "stop")
}

// wary is a scrubber that holds back the last byte.
type wary struct{ held *string }

func (wary) Open(context.Context) (model.Scrub, error) { return wary{new(string)}, nil }

func (w wary) Push(piece string, last bool) (string, error) {
	text := *w.held + piece
	cut := len(text)
	if !last {
		cut = max(0, cut-1)
	}
	*w.held = text[cut:]
	return text[:cut], nil
}

func (wary) Close() {}

// Text is recorded as soon as the redactor releases it, without waiting for another piece.
func TestStream_ShowsAPieceBeforeTheNextIsThere(t *testing.T) {
	t.Parallel()
	p := patient{make(chan struct{})}
	reg, err := provider.NewRegistry(p)
	require.NoError(t, err)
	loop := model.New(model.Config{
		MaxAttempts: 1,
		Multiplier:  2,
		Timeout:     5 * time.Second,
		Defaults:    model.Defaults{Provider: "pieces", Model: "m", MaxTokens: 100},
	}, model.Deps{
		Models:   reg,
		Schemas:  schemas{},
		Scrubber: func(string, string, bool) model.Scrubber { return wary{} },
		Clock:    time.Now,
	})
	j := &journal{}
	once := sync.OnceFunc(func() { close(p.shown) })
	res := loop.Run(t.Context(), model.Task{
		Tenant: "acme",
		RunID:  "run_1",
		TypeID: node.TypeCallPrompt,
		Input:  node.Input{NodeID: "n", Config: json.RawMessage(`{}`)},
	}, telling{j, once})
	require.Nil(t, res.Err, "the second piece followed the recorded first one")
	var chunks []string
	for _, d := range j.drafts {
		if d.Type == wire.EventOutputChunk {
			var c struct {
				Chunk  string
				IsLast bool
			}
			require.NoError(t, json.Unmarshal(d.Payload, &c))
			chunks = append(chunks, fmt.Sprint(c.Chunk, c.IsLast))
		}
	}
	require.Equal(t, []string{"Hello, false", "worlfalse", "dtrue"}, chunks)
}

// telling is a journal that signals each append.
type telling struct {
	*journal

	recorded func()
}

func (w telling) Record(ctx context.Context, drafts ...wire.Draft) error {
	err := w.journal.Record(ctx, drafts...)
	w.recorded()
	return err
}

// thinking is a model with thoughts before its answer.
type thinking struct{ thoughts []string }

func (*thinking) ID() string { return "pieces" }

func (p *thinking) Call(_ context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	c := provider.NewCollector("m", emit)
	deltas := []provider.Delta{{Text: "so "}, {Text: "be it"}}
	if req.Thoughts {
		deltas = append([]provider.Delta{{Thought: p.thoughts[0]}, {Thought: p.thoughts[1]}}, deltas...)
	}
	for _, d := range deltas {
		if err := c.Add(d); err != nil {
			return provider.Result{}, err
		}
	}
	return c.Finish(provider.Result{Stop: provider.StopClean}, "stop")
}

// secretive is a scrubber that removes one secret, even if it is split.
type secretive struct{ held *strings.Builder }

func (secretive) Open(context.Context) (model.Scrub, error) {
	return secretive{&strings.Builder{}}, nil
}

func (s secretive) Push(piece string, last bool) (string, error) {
	s.held.WriteString(piece)
	if !last {
		return "", nil
	}
	return strings.ReplaceAll(s.held.String(), "hunter2-hunter2", "[REDACTED:s]"), nil
}

func (secretive) Close() {}

// OpenWOP envelope contract §5: thoughts are recorded as events of their own, before the answer,
// redacted like it, and are not part of it.
func TestStream_ShowsThoughtsBesideTheAnswer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", model.SummaryBytes)
	for name, tc := range map[string]struct {
		config, configurable string
		thoughts             []string
		scrubber             model.Scrubber
		want                 string
		reasoned             string
	}{
		"full":                 {`{"thoughts":true}`, ``, []string{"hm, ", "well"}, plain{}, "agent.reasoning.delta agent.reasoning.delta agent.reasoned output.chunk output.chunk output.chunk provider.usage", "hm, well"},
		"a secret that is cut": {`{"thoughts":true}`, ``, []string{"hunter2-", "hunter2"}, secretive{}, "agent.reasoning.delta agent.reasoned output.chunk provider.usage", "[REDACTED:s]"},
		"summary":              {`{"thoughts":true}`, `{"reasoningVerbosity":"summary"}`, []string{"a", long}, plain{}, "agent.reasoned output.chunk output.chunk output.chunk provider.usage", "a" + long[:model.SummaryBytes-2]},
		"off":                  {`{"thoughts":true}`, `{"reasoningVerbosity":"off"}`, []string{"hm, ", "well"}, plain{}, "output.chunk output.chunk output.chunk provider.usage", ""},
		"not asked for":        {`{}`, ``, []string{"hm, ", "well"}, plain{}, "output.chunk output.chunk output.chunk provider.usage", ""},
		"not streamed":         {`{"thoughts":true,"expectsStreaming":false}`, ``, []string{"hm, ", "well"}, plain{}, "provider.usage", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg, err := provider.NewRegistry(&thinking{tc.thoughts})
			require.NoError(t, err)
			loop := model.New(model.Config{
				MaxAttempts: 1,
				Multiplier:  2,
				Timeout:     5 * time.Second,
				Defaults:    model.Defaults{Provider: "pieces", Model: "m", MaxTokens: 100},
			}, model.Deps{
				Models:   reg,
				Schemas:  schemas{},
				Scrubber: func(string, string, bool) model.Scrubber { return tc.scrubber },
				Clock:    time.Now,
			})
			j := &journal{}
			res := loop.Run(t.Context(), model.Task{
				Tenant: "acme", RunID: "run_1", TypeID: node.TypeCallPrompt,
				Input: node.Input{
					NodeID:       "n",
					Config:       json.RawMessage(tc.config),
					Configurable: json.RawMessage(tc.configurable),
				},
			}, j)
			require.Nil(t, res.Err)
			r := rig{journal: j, result: res}
			require.Equal(t, tc.want, r.names())
			require.Equal(t, `"so be it"`, string(res.Output.Ports["output"]))
			if tc.reasoned != "" {
				var p struct{ AgentID, Reasoning string }
				require.NoError(t, json.Unmarshal([]byte(r.payload(t, wire.EventAgentReasoned)), &p))
				require.Equal(t, "node:n "+tc.reasoned, p.AgentID+" "+p.Reasoning)
			}
			for i, d := range j.drafts {
				require.NotContains(t, string(d.Payload), "hunter2", i)
			}
		})
	}
}

// gone is a scrubber that fails after some pieces.
type gone struct{ left *int }

func (g gone) Open(context.Context) (model.Scrub, error) { return g, nil }

func (g gone) Push(piece string, _ bool) (string, error) {
	if *g.left--; *g.left < 0 {
		return "", errors.New("redactor is down")
	}
	return piece, nil
}

func (gone) Close() {}

// If the redactor is lost, the node is interrupted instead of failed: it keeps its retries and runs
// again later.
func TestStream_IsInterruptedWhenTheRedactorIsLost(t *testing.T) {
	t.Parallel()
	for pieces := range 4 { // two thoughts and their end, then the answer
		reg, err := provider.NewRegistry(&thinking{[]string{"hm, ", "well"}})
		require.NoError(t, err)
		loop := model.New(model.Config{
			MaxAttempts: 1,
			Multiplier:  2,
			Timeout:     5 * time.Second,
			Defaults:    model.Defaults{Provider: "pieces", Model: "m", MaxTokens: 100},
		}, model.Deps{
			Models:   reg,
			Schemas:  schemas{},
			Scrubber: func(string, string, bool) model.Scrubber { return gone{&pieces} },
			Clock:    time.Now,
		})
		res := loop.Run(t.Context(), model.Task{
			Tenant: "acme",
			RunID:  "run_1",
			TypeID: node.TypeCallPrompt,
			Input:  node.Input{NodeID: "n", Config: json.RawMessage(`{"thoughts":true}`)},
		}, &journal{})
		require.Nil(t, res.Err)
		require.ErrorContains(t, res.Interrupted, "redactor is down")
	}
}
