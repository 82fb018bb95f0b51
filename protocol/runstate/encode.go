package runstate

import (
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/channel"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
)

// FoldVersion is the version of the fold and of its encoding. Raise it with every change after
// which the same log folds to another State, or a State encodes to other bytes. Encoded states of
// other versions are ignored. A test in test/golden fails when a raise is due.
const FoldVersion = 4

// Encode returns the state as bytes, without its record. Equal states have equal bytes.
func (s *State) Encode() ([]byte, error) {
	c := &coder{}
	s.code(c)
	return c.buf, c.err
}

// Decode returns the encoded state, given the record of its run. The result shares memory with b,
// which must not change.
func Decode(rec *wire.RunRecord, b []byte) (*State, error) {
	c, s := &coder{buf: b, all: string(b), reading: true}, &State{Record: rec}
	if s.code(c); c.err == nil && len(c.buf) > 0 {
		c.fail()
	}
	if c.err != nil {
		return nil, c.err
	}
	return s, nil
}

func (s *State) code(c *coder) {
	text(c, &s.Status)
	integer(c, &s.EngineVersion)
	integer(c, &s.Next)
	text(c, &s.LastAt)
	text(c, &s.StartedAt)
	text(c, &s.CompletedAt)
	slice(c, &s.Children, func(c *coder, v **Child) { value(c, v, codeChild) })
	table(c, &s.Nodes, func(c *coder, v **Node) { value(c, v, s.codeNode) })
	table(c, &s.Variables, (*coder).raw)
	s.codeChannels(c)
	table(c, &s.Pins, integer[int])
	table(c, &s.Tainted, (*coder).bool)
	pointer(c, &s.Error, codeError)
	integer(c, &s.Executions)
	table(c, &s.Envelopes, func(c *coder, v **Envelope) { value(c, v, codeEnvelope) })
	codeCost(c, &s.Cost)
	c.raw(&s.Outputs)
	slice(c, &s.Interrupts, func(c *coder, v **Interrupt) { value(c, v, codeInterrupt) })
	pointer(c, &s.Pausing, func(c *coder, v *wire.PauseNote) {
		text(c, &v.Reason)
		text(c, &v.By)
		text(c, &v.At)
	})
	text(c, &s.PausedAt)
	pointer(c, &s.Cancelling, func(c *coder, v *wire.CancelNote) {
		text(c, &v.Reason)
		text(c, &v.By)
		text(c, &v.ParentRunID)
	})
	integer(c, &s.busy)
	integer(c, &s.idle)
	text(c, &s.idleSince)
	integer(c, &s.resting)
	integer(c, &s.rest)
	text(c, &s.restSince)
}

func (s *State) codeNode(c *coder, n *Node) {
	text(c, &n.Status)
	text(c, &n.TypeID)
	integer(c, &n.Attempt)
	pointer(c, &n.Fallback, func(c *coder, v *modelgate.Model) {
		text(c, &v.Provider)
		text(c, &v.Model)
	})
	pointer(c, &n.Next, codeNextModel)
	table(c, &n.Outputs, (*coder).raw)
	pointer(c, &n.Error, codeError)
	text(c, &n.Since)
	text(c, &n.Began)
	integer(c, &n.DelayMs)
	integer(c, &n.TimeoutMs)
	c.bool(&n.Chunked)
	c.bool(&n.Held)
	integer(c, &n.Rounds)
	slice(c, &n.Retries, func(c *coder, v *Retry) {
		integer(c, &v.Attempt)
		text(c, &v.Reason)
		text(c, &v.Detail)
		integer(c, &v.Sequence)
	})
	pointer(c, &n.Prompt, func(c *coder, v *Prompt) {
		slice(c, &v.Refs, text[string])
		text(c, &v.Hash)
		integer(c, &v.Rounds)
	})
	integer(c, &n.Clarifications)
	integer(c, &n.Spared)
	integer(c, &n.Lost)
	integer(c, &n.Waits)
	text(c, &n.Trust)
	c.bool(&n.rests)
	s.codeChildOf(c, n)
}

// codeChildOf encodes a node's child as its 1-based index among the run's children, because both
// are the same value. 0 means none.
func (s *State) codeChildOf(c *coder, n *Node) {
	number := 0
	if n.Child != nil {
		if number = slices.Index(s.Children, n.Child) + 1; number == 0 && c.err == nil {
			c.err = fmt.Errorf("encode run state: child %s is not among the run's children", n.Child.RunID)
		}
	}
	integer(c, &number)
	switch {
	case !c.reading || number == 0:
	case number < 0 || number > len(s.Children):
		c.fail()
	default:
		n.Child = s.Children[number-1]
	}
}

func codeChild(c *coder, v *Child) {
	text(c, &v.RunID)
	text(c, &v.WorkflowID)
	text(c, &v.NodeID)
	text(c, &v.Status)
	text(c, &v.InterruptID)
	text(c, &v.Kind)
	c.bool(&v.Cut)
}

func codeEnvelope(c *coder, v *Envelope) {
	text(c, &v.NodeID)
	slice(c, &v.EventIDs, text[string])
	text(c, &v.Kind)
	text(c, &v.ID)
	c.raw(&v.Payload)
	integer(c, &v.Sequence)
	integer(c, &v.Answer.Size)
	integer(c, &v.Answer.Index)
	slice(c, &v.Answer.With, integer[int])
	text(c, &v.Hints.Label)
	c.raw(&v.Hints.Rendering)
	text(c, &v.InterruptID)
	c.bool(&v.Logged)
}

func codeCost(c *coder, v *Cost) {
	integer(c, &v.Calls)
	integer(c, &v.Others)
	integer(c, &v.InputTokens)
	integer(c, &v.OutputTokens)
	c.float(&v.USD)
	integer(c, &v.PricedCalls)
	text(c, &v.Provider)
	text(c, &v.Model)
}

func codeError(c *coder, v *wire.NodeError) {
	text(c, &v.Code)
	text(c, &v.Message)
	document(c, &v.Details)
	c.bool(&v.Retryable)
	integer(c, &v.RetryAfter)
	c.bool(&v.Capacity)
	integer(c, &v.Retries)
	pointer(c, &v.Next, codeNextModel)
	text(c, &v.Turn)
	text(c, &v.CausationID)
}

func codeNextModel(c *coder, v *wire.NextModel) {
	integer(c, &v.Index)
	text(c, &v.Provider)
	text(c, &v.Model)
}

func codeInterrupt(c *coder, v *Interrupt) {
	c.bool(&v.Resolved)
	c.raw(&v.ResumeValue)
	value(c, &v.Pending, codePending)
}

// codePending encodes the JSON documents byte by byte, as in their events.
func codePending(c *coder, p *interrupt.Pending) {
	text(c, &p.Kind)
	text(c, &p.Key)
	c.raw(&p.Data)
	c.raw(&p.ResumeSchema)
	integer(c, &p.TimeoutMs)
	text(c, &p.RunID)
	text(c, &p.NodeID)
	text(c, &p.InterruptID)
	text(c, &p.RequestedAt)
	text(c, &p.Trust)
	votes := []interrupt.Vote(p.Votes)
	slice(c, &votes, codeVote)
	p.Votes = votes
	slice(c, &p.Questions, func(c *coder, v *interrupt.Exchange) {
		text(c, &v.Question)
		text(c, &v.By)
		text(c, &v.At)
	})
	pointer(c, &p.Escalated, func(c *coder, v *interrupt.Escalation) {
		integer(c, &v.Level)
		text(c, &v.At)
	})
}

func codeVote(c *coder, v *interrupt.Vote) {
	text(c, &v.Voter)
	text(c, &v.Action)
	text(c, &v.By)
	text(c, &v.At)
	pointer(c, &v.Standing, func(c *coder, s *interrupt.Standing) {
		c.bool(&s.Listed)
		slice(c, &s.Groups, text[string])
		slice(c, &s.Roles, text[string])
		text(c, &s.Override)
	})
}

// codeChannels encodes the contents of the channels. Declarations come from the record; a channel
// without one was declared by its first write.
func (s *State) codeChannels(c *coder) {
	type held struct {
		decl wire.Channel
		channel.Saved
	}
	var all map[string]held
	if !c.reading && s.Channels != nil {
		all = make(map[string]held, len(s.Channels))
		for name, st := range s.Channels {
			all[name] = held{st.Declaration(), st.Save()}
		}
	}
	table(c, &all, func(c *coder, v *held) {
		text(c, &v.decl.Reducer)
		integer(c, &v.decl.SchemaVersion)
		slice(c, &v.Entries, func(c *coder, e *channel.SavedEntry) {
			c.raw(&e.Value)
			c.int64(&e.Ms)
			text(c, &e.Key)
		})
		c.raw(&v.Value)
		c.bool(&v.IsList)
		c.bool(&v.Written)
		pointer(c, &v.Broken, func(c *coder, b *channel.Break) {
			integer(c, &b.Version)
			integer(c, &b.Current)
			text(c, &b.EventID)
		})
	})
	if !c.reading || all == nil {
		return
	}
	s.Channels = make(map[string]*channel.State, len(all))
	for name, v := range all {
		if declared, ok := s.Record.Channels[name]; ok {
			v.decl = declared
		}
		s.Channels[name] = channel.Restore(v.decl, v.Saved)
	}
}
