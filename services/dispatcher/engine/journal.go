package engine

import (
	"context"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
)

// writerPort connects the effects of a session with its writer.
type writerPort struct {
	requests chan request
	results  chan effectResult
	// stopped is closed when the session stops its effects.
	stopped <-chan struct{}
}

// request is sent by an effect and served by the writer: drafts are appended, or an envelope is
// accepted.
type request struct {
	effect machine.Effect
	drafts []wire.Draft
	accept *model.AcceptRequest // nil for drafts
	reply  chan answer
}

// answer is the writer's reply to a request. It has an outcome if an envelope was accepted.
type answer struct {
	outcome model.Outcome
	err     error
}

// done replies to a request without an outcome. A nil error reports that the drafts were appended.
func (r request) done(err error) { r.reply <- answer{err: err} }

// effectResult is the result of an effect.
type effectResult struct {
	effect machine.Effect
	result model.Result
}

// sendRequest sends a request to the writer and waits for its answer.
func (p writerPort) sendRequest(ctx context.Context, r request) (model.Outcome, error) {
	r.reply = make(chan answer, 1)
	select {
	case p.requests <- r:
	case <-ctx.Done():
		return model.Outcome{}, context.Cause(ctx)
	case <-p.stopped:
		return model.Outcome{}, context.Canceled
	}
	select {
	case a := <-r.reply:
		return a.outcome, a.err
	case <-p.stopped:
		return model.Outcome{}, context.Canceled
	}
}

// sendResult sends the result of an effect to the writer, unless the session stops its effects.
func (p writerPort) sendResult(d effectResult) {
	select {
	case p.results <- d:
	case <-p.stopped:
	}
}

// journal gives an effect access to the run's log. Every call is served by the session's writer.
type journal struct {
	port   writerPort
	effect machine.Effect
}

// Record appends drafts in one frame; see model.Journal.
func (j journal) Record(ctx context.Context, drafts ...wire.Draft) error {
	_, err := j.port.sendRequest(ctx, request{effect: j.effect, drafts: drafts})
	return err
}

// submitEnvelope submits an envelope and its preceding events to the acceptor.
func (j journal) submitEnvelope(ctx context.Context, req model.AcceptRequest) (model.Outcome, error) {
	return j.port.sendRequest(ctx, request{effect: j.effect, accept: &req})
}
