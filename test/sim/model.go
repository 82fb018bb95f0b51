package sim

import (
	"context"
	"fmt"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider"
)

const (
	providerID   = "sim"
	modelTimeout = 8 * time.Second
)

// modelPort is a dispatcher's access to the model server.
type modelPort struct{ p *process }

// ID names the provider; see provider.Provider.
func (modelPort) ID() string { return providerID }

// Call makes one model call; see provider.Provider.
func (m modelPort) Call(ctx context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	var (
		who  asker
		node Node
		does act
	)
	id := m.p.lease()
	err := m.p.call(ctx, atModel, req.NodeID+" "+req.InvocationID, func() error {
		var ok bool
		if who, ok = m.p.w.models.find(req.InvocationID, providerID+":model-1"); !ok {
			m.p.w.violate(fmt.Errorf("effects: node %s calls a model with an invocation id that belongs to no run", req.NodeID))
			return errFault
		}
		h := m.p.w.runs[who.run]
		node = h.flow.Nodes[who.nth]
		does = m.p.w.models.next(who, node.Script)
		m.p.w.say("   %s calls for %s %s, attempt %d", m.p.name, who.run, req.NodeID, who.ordinal)
		m.p.w.begins(m.p, h, who)
		m.p.w.enters(m.p, id, who.run+" "+req.NodeID)
		return nil
	})
	defer func() { m.p.w.leaves(m.p, who.run+" "+req.NodeID) }()
	if err != nil {
		return provider.Result{}, ctx.Err()
	}
	t := talk{m.p, ctx, emit, fmt.Sprintf("%s %s", who.run, req.NodeID)}
	return t.answer(node, who.nth, does)
}

// next counts a call.
func (m *models) next(who asker, s *Script) act {
	key := who.run + " " + who.node
	n := m.calls[key]
	if m.spent {
		n += s.calls()
	}
	m.calls[key]++
	return s.act(n)
}

// talk is one answer being sent.
type talk struct {
	p    *process
	ctx  context.Context //nolint:containedctx // lives as long as one call
	emit func(provider.Delta) error
	who  string
}

func (t talk) answer(n Node, i int, does act) (provider.Result, error) {
	think := time.Duration(n.Script.Think * float64(time.Second))
	if does == hangs {
		think = modelTimeout
	}
	if err := t.pause(think, "thinks"); err != nil {
		return provider.Result{}, err
	}
	if does == hangs {
		return provider.Result{}, context.DeadlineExceeded
	}
	res := provider.Result{
		Stop: provider.StopClean, RawStop: "end_turn", Model: "model-1", Usage: provider.Usage{InputTokens: 3, OutputTokens: 5, TotalTokens: 8, Known: true},
	}
	switch does {
	case breaks:
		return res, &provider.Error{Code: provider.CodeUnavailable, Message: "model server failed", Retryable: true}
	case rejects:
		return res, &provider.Error{Code: provider.CodeModelNotSupported, Message: "no such model"}
	case refuses:
		res.Stop, res.RefusalText = provider.StopRefused, "I would rather not"
		return res, t.last("content_filter")
	case errs:
		res.Text = "no document at all"
	case cutOff:
		res.Stop, res.Text = provider.StopTruncated, n.text(i)[:4]
	default:
		res.Text = n.text(i)
	}
	return res, t.say(res, n.Script.Pieces, does)
}

// say sends the text in pieces.
func (t talk) say(res provider.Result, pieces int, does act) error {
	size := max(len(res.Text)/pieces, 1)
	for rest := res.Text; rest != ""; {
		piece := rest[:min(size, len(rest))]
		rest = rest[len(piece):]
		if err := t.pause(0, "says "+short([]byte(rest))); err != nil {
			return err
		}
		if err := t.tell(provider.Delta{Text: piece, Model: "model-1"}); err != nil {
			return err
		}
		if does == breaksLate {
			return &provider.Error{Code: provider.CodeUnavailable, Message: "model server broke off", Retryable: true}
		}
	}
	if res.Stop == provider.StopTruncated {
		return t.last("length")
	}
	return t.last("stop")
}

func (t talk) last(reason string) error {
	if err := t.pause(0, "ends"); err != nil {
		return err
	}
	return t.tell(provider.Delta{Last: true, FinishReason: reason, Model: "model-1"})
}

func (t talk) tell(d provider.Delta) error {
	if t.emit == nil {
		return nil
	}
	return t.emit(d)
}

// pause waits for the model's thinking time and the network.
func (t talk) pause(d time.Duration, what string) error {
	until := time.Now().Add(d)
	err := t.p.wait(t.ctx, &call{at: atPiece, detail: t.who + " " + what, ready: func() time.Time { return until }})
	switch {
	case t.ctx.Err() != nil:
		return t.ctx.Err()
	case err != nil: // the process was killed: no caller is left
		return context.Canceled
	}
	return nil
}
