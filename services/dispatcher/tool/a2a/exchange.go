package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/a2a"
	"github.com/a2aproject/a2a-go/a2aclient"

	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/tool"
	"waybill.dev/waybill/services/dispatcher/tool/outbound"
)

// exchange is one message and its result.
type exchange struct {
	agent      *agent
	background *sync.WaitGroup
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

// run sends the message. The answer is a message, or a task that has stopped.
func (e *exchange) run(ctx context.Context, msg *a2a.Message) (a2a.Event, error) {
	client, err := e.agent.connect(ctx)
	if err != nil {
		return nil, err
	}
	res, err := e.send(ctx, client, msg)
	if err != nil {
		return nil, err
	}
	task, ok := res.(*a2a.Task)
	if !ok {
		return res, nil
	}
	task, err = pollTask(ctx, client, task)
	if err != nil || !task.Status.State.Terminal() {
		e.cancel(ctx, client, task.ID) // no caller waits for it any more
	}
	return task, err
}

// send sends the message. After the caller is gone it waits a moment longer for the response, to
// cancel the task that the agent created.
func (e *exchange) send(ctx context.Context, client *a2aclient.Client, msg *a2a.Message) (a2a.SendMessageResult, error) {
	type reply struct {
		res a2a.SendMessageResult
		err error
		// panicked is the value of a panic in the client; nil for none.
		panicked any
	}
	replies := make(chan reply)
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
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
		res, err := client.SendMessage(sending, &a2a.MessageSendParams{Message: msg})
		select {
		case replies <- reply{res: res, err: err}:
		case <-ctx.Done():
			if task, ok := res.(*a2a.Task); ok && err == nil {
				e.cancel(ctx, client, task.ID)
			}
		}
	})
	select {
	case r := <-replies:
		if r.panicked != nil {
			panic(r.panicked) // the node's goroutine recovers it
		}
		return r.res, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pollTask polls a task until it ends or requires input. The returned task is never nil.
func pollTask(ctx context.Context, client *a2aclient.Client, task *a2a.Task) (*a2a.Task, error) {
	id := task.ID
	waits, lost := retry.Policy{Base: firstPause, Max: lastPause}.Start(), 0
	for {
		if state := task.Status.State; state != a2a.TaskStateSubmitted && state != a2a.TaskStateWorking {
			return task, nil
		}
		if !waits.Wait(ctx) {
			return task, ctx.Err()
		}
		next, err := client.GetTask(ctx, &a2a.TaskQueryParams{ID: id})
		switch {
		case err == nil:
			task, lost = next, 0
		case ctx.Err() != nil || isFinal(err) || lost == maxPollErrors:
			return task, err
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
func (e *exchange) cancel(ctx context.Context, client *a2aclient.Client, id a2a.TaskID) {
	e.background.Go(func() {
		defer func() { _ = recover() }() // nothing depends on the result
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
		defer cancel()
		_, _ = client.CancelTask(ctx, &a2a.TaskIDParams{ID: id}) // best effort
	})
}

// Ports of a node's result.
const (
	portOutput = "output"
	portTask   = "task"
)

// newResult converts an answer to the node's result.
func (e *exchange) newResult(answer a2a.Event) model.Result {
	text := ""
	switch v := answer.(type) {
	case *a2a.Message:
		text = textOf(v.Parts)
	case *a2a.Task:
		if bad := e.stateError(v.Status.State); bad != nil {
			return tool.NewFailure(bad)
		}
		text = textOfTask(v)
	}
	doc, err := json.Marshal(answer)
	if err != nil {
		return tool.NewFailure(&wire.NodeError{
			Code:    string(fault.ToolFailed),
			Message: e.agent.peer().Name + " answered with something that is no document",
		})
	}
	return tool.NewSuccess(map[string]json.RawMessage{portOutput: wire.AppendString(nil, text), portTask: doc})
}

// stateError returns the error of a task that did not complete. Only states of the protocol are
// repeated; other words are the agent's.
func (e *exchange) stateError(state a2a.TaskState) *wire.NodeError {
	name := e.agent.peer().Name
	bad := &wire.NodeError{
		Code:    string(fault.ToolFailed),
		Details: map[string]any{"agent": e.agent.cfg.ID, "state": string(state)},
	}
	switch state {
	case a2a.TaskStateCompleted:
		return nil
	case a2a.TaskStateInputRequired:
		bad.Code = string(fault.PeerInputRequired)
		bad.Message = name + " asks for further input before it goes on; a workflow cannot give it: say everything in one message"
	case a2a.TaskStateAuthRequired:
		bad.Code = string(fault.CredentialRequired)
		bad.Message = name + " asks for a credential before it goes on; set " + e.agent.cfg.TokenName + " to a token that it takes"
	case a2a.TaskStateFailed, a2a.TaskStateRejected, a2a.TaskStateCanceled, a2a.TaskStateUnknown:
		bad.Message = name + " ended its task as " + string(state)
	default:
		delete(bad.Details, "state")
		bad.Message = name + " put its task into a state that A2A 0.3 does not know"
	}
	return bad
}

// textOfTask returns the text of the artifacts, else of the status.
func textOfTask(t *a2a.Task) string {
	var texts []string
	for _, artifact := range t.Artifacts {
		if artifact == nil {
			continue
		}
		if text := textOf(artifact.Parts); text != "" {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 && t.Status.Message != nil {
		return textOf(t.Status.Message.Parts)
	}
	return strings.Join(texts, "\n")
}

// textOf joins the texts of an answer; data is rendered as JSON.
func textOf(parts a2a.ContentParts) string {
	var texts []string
	for _, p := range parts {
		switch p := p.(type) {
		case a2a.TextPart:
			texts = append(texts, p.Text)
		case a2a.DataPart:
			if b, err := json.Marshal(p.Data); err == nil {
				texts = append(texts, string(b))
			}
		}
	}
	return strings.Join(texts, "\n")
}
