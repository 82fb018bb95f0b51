// Package providertest is the conformance suite of the provider port. Every
// adapter runs it in its own tests.
package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// prompt bounds what the port calls "soon"; generous, for slow machines.
const prompt = 10 * time.Second

// Options describe the adapter to the suite.
type Options struct {
	// Request is what the suite asks; its Model must be one the adapter has.
	Request provider.Request
	// Stalls opens an adapter whose call emits at least one piece and then does
	// not end. Nil leaves out the test of a call that is canceled midway.
	Stalls func(t *testing.T) provider.Provider
}

// Ask is a request of one message.
func Ask(model, text string) provider.Request {
	content, err := json.Marshal(text)
	if err != nil { // a string always marshals
		panic(err)
	}
	return provider.Request{Model: model, Messages: []provider.Message{{Role: "user", Content: content}}}
}

// Run checks an adapter against the port. open gives a fresh one whose every
// call answers o.Request completely, in at least one piece; it registers its own
// cleaning up. The calling test must not be parallel: the suite counts goroutines.
func Run(t *testing.T, open func(t *testing.T) provider.Provider, o Options) {
	t.Helper()
	s := suite{open: open, o: o}
	t.Run("keeps its id", s.keepsID)
	t.Run("emits the answer in order and marks the last piece", s.emitsInOrder)
	t.Run("answers without emit", s.answersWithoutEmit)
	t.Run("returns the error of emit and stops", s.returnsEmitError)
	t.Run("does nothing when the context has ended", s.honoursEndedContext)
	t.Run("returns soon when canceled midway and leaks nothing", s.cancelsMidway)
	t.Run("refuses a bad request", s.refusesBadRequest)
	t.Run("serves calls at the same time", s.servesConcurrently)
}

type suite struct {
	open func(t *testing.T) provider.Provider
	o    Options
}

func (s suite) keepsID(t *testing.T) {
	p := s.open(t)
	require.NotEmpty(t, p.ID())
	require.Equal(t, p.ID(), p.ID())
}

// Answer asks once and keeps the pieces. The call must complete, and as the port
// promises.
func Answer(t *testing.T, p provider.Provider, req provider.Request) (provider.Result, []provider.Delta) {
	t.Helper()
	var pieces []provider.Delta
	res, err := p.Call(t.Context(), req, func(d provider.Delta) error {
		pieces = append(pieces, d)
		return nil
	})
	require.NoError(t, err)
	Check(t, res, pieces)
	return res, pieces
}

// Failure asks once. The call must fail, with an *Error that shows none of the hidden
// words.
func Failure(t *testing.T, p provider.Provider, req provider.Request, hidden ...string) *provider.Error {
	t.Helper()
	_, err := p.Call(t.Context(), req, func(provider.Delta) error { return nil })
	e, ok := provider.As(err)
	require.True(t, ok, "got %v", err)
	for _, word := range hidden {
		require.NotContains(t, e.Error(), word)
	}
	return e
}

func (s suite) emitsInOrder(t *testing.T) { Answer(t, s.open(t), s.o.Request) }

// Check asserts what the port promises of a completed call.
func Check(t *testing.T, res provider.Result, pieces []provider.Delta) {
	t.Helper()
	require.NotEmpty(t, pieces, "a completed call emits its last piece at least")
	var text strings.Builder
	var calls []provider.ToolCall
	for i, d := range pieces {
		text.WriteString(d.Text)
		calls = append(calls, d.ToolCalls...)
		last := i == len(pieces)-1
		require.Equal(t, last, d.Last, "piece %d of %d", i+1, len(pieces))
		require.NotEmpty(t, d.Model, "piece %d names the model", i+1)
		if !last {
			require.Empty(t, d.FinishReason, "piece %d is not the last", i+1)
			require.Nil(t, d.Usage, "piece %d is not the last", i+1)
		}
	}
	require.Equal(t, res.Text, text.String(), "the pieces joined are the answer")
	require.Equal(t, res.ToolCalls, calls)
	checkEnd(t, res, pieces[len(pieces)-1])
}

func checkEnd(t *testing.T, res provider.Result, last provider.Delta) {
	t.Helper()
	require.Contains(t, []provider.StopClass{
		provider.StopClean, provider.StopTruncated, provider.StopRefused, provider.StopSequence, provider.StopUnknown,
	}, res.Stop)
	require.NotEmpty(t, res.Model)
	require.NotEmpty(t, res.RawStop)
	require.Contains(t, []string{"", "stop", "length", "tool_calls", "content_filter"}, last.FinishReason)
	if !res.Usage.Known {
		require.Nil(t, last.Usage)
		require.Equal(t, provider.Usage{}, res.Usage, "what is not known is not counted")
		return
	}
	require.NotNil(t, last.Usage)
	require.Equal(t, res.Usage, *last.Usage)
}

func (s suite) answersWithoutEmit(t *testing.T) {
	with, _ := Answer(t, s.open(t), s.o.Request)
	without, err := s.open(t).Call(t.Context(), s.o.Request, nil)
	require.NoError(t, err)
	require.Equal(t, with.Text, without.Text)
	require.Equal(t, with.Stop, without.Stop)
}

func (s suite) returnsEmitError(t *testing.T) {
	enough := errors.New("enough")
	_, pieces := Answer(t, s.open(t), s.o.Request)
	for _, at := range []int{1, len(pieces)} {
		seen := 0
		_, err := s.open(t).Call(t.Context(), s.o.Request, func(provider.Delta) error {
			if seen++; seen == at {
				return enough
			}
			return nil
		})
		require.Same(t, enough, err, "the error is returned as it is")
		require.Equal(t, at, seen, "nothing is emitted after an error")
	}
}

func (s suite) honoursEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.open(t).Call(ctx, s.o.Request, func(provider.Delta) error {
		t.Error("a piece after the context had ended")
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
}

func (s suite) cancelsMidway(t *testing.T) {
	if s.o.Stalls == nil {
		t.Skip("SKIPPED, the adapter never stalls: set Options.Stalls to test cancellation")
	}
	p := s.o.Stalls(t)
	here := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := p.Call(ctx, s.o.Request, func(provider.Delta) error {
			cancel()
			return nil
		})
		done <- err
	}()
	select {
	case err := <-done:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(prompt):
		t.Fatalf("the call goes on %s after its context ended", prompt)
	}
	goleak.VerifyNone(t, here)
}

func (s suite) refusesBadRequest(t *testing.T) {
	for name, spoil := range map[string]func(*provider.Request){
		"no model":    func(r *provider.Request) { r.Model = "" },
		"no messages": func(r *provider.Request) { r.Messages, r.System = nil, "" },
		"unknown role": func(r *provider.Request) {
			r.Messages = []provider.Message{{Role: "robot", Content: json.RawMessage(`"x"`)}}
		},
		"bad content": func(r *provider.Request) {
			r.Messages = []provider.Message{{Role: "user", Content: json.RawMessage(`{}`)}}
		},
		"negative room": func(r *provider.Request) { r.MaxTokens = -1 },
	} {
		req := s.o.Request
		spoil(&req)
		_, err := s.open(t).Call(t.Context(), req, nil)
		e, ok := provider.As(err)
		require.True(t, ok, "%s: got %v, want a *provider.Error", name, err)
		require.Equal(t, provider.CodeInvalidRequest, e.Code, name)
		require.False(t, e.Retryable, name)
	}
}

func (s suite) servesConcurrently(t *testing.T) {
	p := s.open(t)
	var g errgroup.Group
	for range 8 {
		g.Go(func() error {
			_, err := p.Call(t.Context(), s.o.Request, func(provider.Delta) error { return nil })
			return err
		})
	}
	require.NoError(t, g.Wait())
}
