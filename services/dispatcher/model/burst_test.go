package model_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// slowLog is a log whose first append blocks until the model must wait.
type slowLog struct {
	journal

	mu      sync.Mutex
	batches []int
	text    strings.Builder
	full    chan struct{}
}

func (l *slowLog) Record(_ context.Context, drafts ...wire.Draft) error {
	l.mu.Lock()
	first := len(l.batches) == 0
	l.batches = append(l.batches, len(drafts))
	l.mu.Unlock()
	if first {
		<-l.full
	}
	for _, d := range drafts {
		var p struct{ Chunk string }
		if json.Unmarshal(d.Payload, &p) == nil {
			l.text.WriteString(p.Chunk)
		}
	}
	return nil
}

// burst is a model that streams many words without a pause.
type burst struct {
	words int
	said  chan int
}

func (burst) ID() string { return "burst" }

func (b burst) Call(_ context.Context, _ provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	c := provider.NewCollector("m", emit)
	for i := range b.words {
		select {
		case b.said <- i:
		default:
		}
		if err := c.Add(provider.Delta{Text: "w"}); err != nil {
			return provider.Result{}, err
		}
	}
	return c.Finish(provider.Result{Stop: provider.StopClean}, "stop")
}

// A model that is faster than the log is paused. The pending events and the events per append are
// limited.
func TestStream_OfAFastModelIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const words = 10_000
		burstModel := burst{words: words, said: make(chan int, words)}
		reg, err := provider.NewRegistry(burstModel)
		require.NoError(t, err)
		loop := model.New(model.Config{
			MaxAttempts: 1,
			Multiplier:  2,
			Timeout:     time.Minute,
			Defaults:    model.Defaults{Provider: "burst", Model: "m", MaxTokens: 100},
		}, model.Deps{
			Models:   reg,
			Schemas:  schemas{},
			Scrubber: func(string, string, bool) model.Scrubber { return plain{} },
			Clock:    time.Now,
		})
		log := &slowLog{full: make(chan struct{})}
		var res model.Result
		go func() {
			res = loop.Run(t.Context(), model.Task{
				RunID:  "run_1",
				TypeID: node.TypeCallPrompt,
				Input:  node.Input{NodeID: "n", Config: json.RawMessage(`{"prompt":"hi"}`)},
			}, log)
		}()
		synctest.Wait()
		require.Less(t, len(burstModel.said), words/2, "the model must wait")
		close(log.full)
		synctest.Wait()
		require.Nil(t, res.Err)
		require.Equal(t, strings.Repeat("w", words), log.text.String())
		for _, n := range log.batches {
			require.LessOrEqual(t, n, 512)
		}
	})
}
