package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/callguard"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
)

var errDrains = errors.New("drains")

// begins is a loop of one provider in a process whose permission to begin calls can end.
type begins struct {
	ctx     context.Context //nolint:containedctx // has the guard
	quieten context.CancelCauseFunc
	loop    *model.Loop
	calls   int
}

// answering returns a process whose model gives answers in turn. before is called within each call.
func answering(t *testing.T, settings string, before func(b *begins, call int), answers ...provider.Result) *begins {
	t.Helper()
	b := &begins{}
	quiet, quieten := context.WithCancelCause(t.Context())
	t.Cleanup(func() { quieten(nil) })
	b.quieten = quieten
	b.ctx = callguard.With(t.Context(), callguard.Guard{Quiet: quiet, Await: func(context.Context) error { return nil }})
	all, err := limit.Parse([]byte(`{"providers":{"vendor":`+settings+`}}`), limit.Host{})
	require.NoError(t, err)
	reg, err := provider.NewRegistry(vendor(func(context.Context, provider.Request) (provider.Result, error) {
		b.calls++
		n := b.calls
		if before != nil {
			before(b, n)
		}
		a := answers[min(n, len(answers))-1]
		a.Usage = provider.Usage{Known: true, InputTokens: 1, OutputTokens: 1, TotalTokens: 2}
		return a, nil
	}))
	require.NoError(t, err)
	b.loop = model.New(model.Config{
		MaxAttempts: 3, Multiplier: 2, Providers: all, Defaults: model.Defaults{Provider: "vendor", Model: "m", MaxTokens: 100},
	}, model.Deps{
		Calls:    model.Calls{Limiter: limit.NewLimiter(all, nil, time.Now)},
		Models:   reg,
		Schemas:  schemas{},
		Scrubber: func(string, string, bool) model.Scrubber { return plain{} },
		Clock:    time.Now,
	})
	return b
}

func (b *begins) run(t model.Task) (model.Result, *journal) {
	j := &journal{accept: acceptAll}
	t.TypeID, t.Tenant, t.RunID = node.TypeCallPrompt, "acme", "run_1"
	t.Input = node.Input{
		NodeID: "n",
		Config: json.RawMessage(`{"envelopeType":"vendor.x.ticket"}`),
		Ports:  map[string]json.RawMessage{"messages": json.RawMessage(`[{"role":"user","content":"hello"}]`)},
	}
	return b.loop.Run(b.ctx, t, j), j
}

var (
	cutOff  = provider.Result{Text: `{"a":`, Stop: provider.StopTruncated}
	correct = provider.Result{Text: `{"a":1}`, Stop: provider.StopClean}
	proseIn = provider.Result{Text: "I would rather say it in words.", Stop: provider.StopClean}
)

// A draining process records the round that ends, and begins no further one. The next owner repeats no
// recorded round.
func TestBegin_ADrainEndsAnAnswerBetweenRounds(t *testing.T) {
	t.Parallel()
	b := answering(t, `{}`, func(b *begins, _ int) { b.quieten(errDrains) }, cutOff, correct)
	res, j := b.run(model.Task{})
	require.ErrorIs(t, res.Interrupted, errDrains)
	require.True(t, res.Unsent)
	require.Equal(t, 1, b.calls)
	require.Equal(t, "provider.usage envelope.truncated envelope.retry.attempted", rig{journal: j}.names(), "the round is recorded")

	next := answering(t, `{}`, nil, correct)
	res, _ = next.run(model.Task{Retries: []model.Retry{{Attempt: 2, Reason: "truncation"}}, Rounds: 1})
	require.Nil(t, res.Err)
	require.NoError(t, res.Interrupted)
	require.Equal(t, 1, next.calls)
}

// The call that converts prose belongs to a call whose answer is not recorded: it may begin while the
// process drains, because otherwise both would be repeated.
func TestBegin_ADrainLetsProseBeConverted(t *testing.T) {
	t.Parallel()
	b := answering(t, `{}`, func(b *begins, call int) {
		if call == 3 {
			b.quieten(errDrains)
		}
	}, proseIn, proseIn, proseIn, correct)
	res, _ := b.run(model.Task{})
	require.NoError(t, res.Interrupted)
	require.Nil(t, res.Err)
	require.Equal(t, 4, b.calls)
}

// A call in the queue of a limited provider is released when the drain begins, and none is admitted any
// more.
func TestBegin_ADrainReleasesTheQueueOfAProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := answering(t, `{"maxConcurrent":1}`, func(*begins, int) {
			time.Sleep(10 * time.Second) //nolint:forbidigo // in a bubble
		}, correct)
		began := time.Now()
		results := make(chan model.Result)
		for range 3 {
			go func() { res, _ := b.run(model.Task{}); results <- res }()
		}
		synctest.Wait()
		b.quieten(errDrains)
		for range 2 {
			res := <-results
			require.ErrorIs(t, res.Interrupted, errDrains)
			require.True(t, res.Unsent)
			require.Equal(t, began, time.Now(), "immediately")
		}
		require.NoError(t, (<-results).Interrupted, "the call in flight ends")
		require.Equal(t, 1, b.calls)
	})
}
