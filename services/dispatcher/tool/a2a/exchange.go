package a2a

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/services/dispatcher/callguard"
	"waybill.dev/waybill/services/dispatcher/tool/outbound"
)

// exchange is one message and its result.
type exchange struct {
	agent      *agent
	background *sync.WaitGroup
	link       *link // in use; nil before the agent's endpoint is known
}

// answer is an agent's message, or its task that has stopped.
type answer struct {
	task *a2a.Task // nil for a message
	doc  []byte    // as the agent sent it
}

// The pause between polls of a task doubles from firstPause to lastPause.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// maxPollErrors limits consecutive failed polls. The agent continues in between, and sending the
// message again would start over.
const maxPollErrors = 5

// cancelTimeout limits the request to cancel a task.
const cancelTimeout = 2 * time.Second

// run sends the message and waits for the answer.
func (e *exchange) run(ctx context.Context, msg *a2a.Message) (answer, error) {
	link, fresh, err := e.agent.connect(ctx)
	if err != nil {
		return answer{}, err
	}
	e.link = link
	given, err := e.send(ctx, msg)
	if isOtherVersion(err) {
		next, failed := e.agent.replace(ctx, link, fresh)
		if failed != nil {
			return answer{}, failed
		}
		if next != nil {
			e.link = next
			given, err = e.send(ctx, msg)
		}
	}
	if err != nil || given.task == nil {
		return given, err
	}
	given, err = e.poll(ctx, given)
	if err != nil || !given.task.Status.State.Terminal() {
		e.cancel(ctx, given.task.ID) // no caller waits for it any more
	}
	return given, err
}

// send sends the message. After the caller is gone it waits a moment longer for the response, to
// cancel the task that the agent created.
func (e *exchange) send(ctx context.Context, msg *a2a.Message) (answer, error) {
	if err := callguard.Begin(ctx); err != nil {
		return answer{}, err
	}
	type reply struct {
		answer
		err error
		// panicked is the value of a panic in the client; nil for none.
		panicked any
	}
	replies := make(chan reply)
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	sending, body := outbound.WithDocument(sending)
	unhook := context.AfterFunc(ctx, func() { time.AfterFunc(cancelTimeout, stop) })
	e.background.Go(func() {
		defer stop()
		defer unhook()
		defer func() {
			if p := recover(); p != nil {
				select {
				case replies <- reply{panicked: p}:
				case <-ctx.Done():
				}
			}
		}()
		res, err := e.link.SendMessage(sending, &a2a.SendMessageRequest{
			Message: msg, Config: &a2a.SendMessageConfig{ReturnImmediately: true},
		})
		task, _ := res.(*a2a.Task)
		select {
		case replies <- reply{answer: answer{task: task, doc: body.Bytes()}, err: err}:
		case <-ctx.Done():
			if task != nil && err == nil {
				e.cancel(ctx, task.ID)
			}
		}
	})
	select {
	case r := <-replies:
		if r.panicked != nil {
			panic(r.panicked) // the node's goroutine recovers it
		}
		return r.answer, r.err
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

// poll polls a task until it ends or requires input. The task of the returned answer is never nil.
func (e *exchange) poll(ctx context.Context, given answer) (answer, error) {
	id := given.task.ID
	waits, lost := retry.Policy{Base: firstPause, Max: lastPause}.Start(), 0
	for {
		if state := given.task.Status.State; state != a2a.TaskStateSubmitted && state != a2a.TaskStateWorking {
			return given, nil
		}
		if !waits.Wait(ctx) {
			return given, ctx.Err()
		}
		asking, body := outbound.WithDocument(ctx)
		next, err := e.link.GetTask(asking, &a2a.GetTaskRequest{ID: id})
		switch {
		case err == nil:
			given, lost = answer{task: next, doc: body.Bytes()}, 0
		case ctx.Err() != nil || isFinal(err) || lost == maxPollErrors:
			return given, err
		default:
			lost++
		}
	}
}

// isFinal reports whether polling again would give the same error.
func isFinal(err error) bool {
	if errors.Is(err, outbound.ErrTooLarge) || errors.Is(err, outbound.ErrOtherHost) {
		return true
	}
	for kind := range refusals {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// cancel sends a cancellation in the background.
func (e *exchange) cancel(ctx context.Context, id a2a.TaskID) {
	e.background.Go(func() {
		defer func() { _ = recover() }() // nothing depends on the result
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
		defer cancel()
		_, _ = e.link.CancelTask(ctx, &a2a.CancelTaskRequest{ID: id}) // best effort
	})
}
