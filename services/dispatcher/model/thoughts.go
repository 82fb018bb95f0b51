package model

import (
	"context"
	"fmt"
	"strings"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Verbosities of thoughts (OpenWOP host contract §2.3, reasoningVerbosity).
const (
	thoughtsFull    = "full"
	thoughtsSummary = "summary"
	thoughtsOff     = "off"
)

// SummaryBytes limits a summary of thoughts. The protocol counts 512 tokens of about four bytes.
const SummaryBytes = 4 * 512

// withoutThoughts returns a text without the blocks of thinking at its start, which some servers leave in the
// answer.
func withoutThoughts(text string) string {
	for {
		rest := strings.TrimLeft(text, " \t\r\n\uFEFF")
		t, isTag := readTag(rest)
		if rest == "" || isTag && !isThinking(t.name) || rest[0] == '[' && !hasPrefixFold(rest, "[THINK]") {
			return text
		}
		budget := searchBudget(len(rest))
		m, ok := (&markReader{text: rest, budget: &budget}).mark(0)
		if !ok || m.ends == "" || m.paired {
			return text
		}
		end := strings.Index(rest[len(m.text):], m.ends)
		if end < 0 {
			return text
		}
		text = strings.TrimLeft(rest[len(m.text)+end+len(m.ends):], " \t\r\n")
	}
}

// thoughtRecorder records a model's thoughts while they arrive. They are not part of the answer and
// decide nothing. Secrets are removed as in the answer.
type thoughtRecorder struct {
	scrubber Scrubber
	// verbosity is full, or summary, which has no deltas.
	verbosity string
	agentID   string
	nodeID    string
	trust     wire.Trust

	// scrub is the stream of the open block of thoughts; nil if none is open.
	scrub        Scrub
	text         strings.Builder
	nextSequence int
}

// newThoughtRecorder returns nil unless the node requests thoughts.
func (e *emission) newThoughtRecorder(s Scrubber) *thoughtRecorder {
	if !e.request.Thoughts {
		return nil
	}
	return &thoughtRecorder{
		scrubber:  s,
		verbosity: e.verbosity,
		agentID:   "node:" + e.task.Input.NodeID,
		nodeID:    e.task.Input.NodeID,
		trust:     e.task.Trust,
	}
}

type deltaPayload struct {
	AgentID   string `json:"agentId"`
	Delta     string `json:"delta"`
	Sequence  int    `json:"sequence"`
	Verbosity string `json:"verbosity"`
}

type reasonedPayload struct {
	AgentID   string `json:"agentId"`
	Reasoning string `json:"reasoning"`
	Verbosity string `json:"verbosity"`
}

// thoughtEvents returns the events of a piece of thought.
func (t *thoughtRecorder) thoughtEvents(ctx context.Context, d provider.Delta) ([]wire.Draft, error) {
	if t == nil || d.Thought == "" {
		return nil, nil
	}
	if t.scrub == nil {
		var err error
		if t.scrub, err = t.scrubber.Open(ctx); err != nil {
			return nil, err
		}
	}
	return t.push(d.Thought, false)
}

// endBlock ends an open block of thoughts. The answer follows.
func (t *thoughtRecorder) endBlock() ([]wire.Draft, error) {
	if t == nil || t.scrub == nil {
		return nil, nil
	}
	out, err := t.push("", true)
	if err != nil {
		return nil, err
	}
	said := t.text.String()
	if t.verbosity == thoughtsSummary && len(said) > SummaryBytes {
		said = strings.ToValidUTF8(said[:SummaryBytes], "") // drop a partial rune
	}
	out = append(out, draft(wire.EventAgentReasoned, t.nodeID, t.trust, reasonedPayload{t.agentID, said, t.verbosity}))
	t.close()
	t.text.Reset()
	t.nextSequence = 0
	return out, nil
}

func (t *thoughtRecorder) push(piece string, last bool) ([]wire.Draft, error) {
	text, err := t.scrub.Push(piece, last)
	if err != nil {
		return nil, fmt.Errorf("redact thoughts: %w", err)
	}
	t.text.WriteString(text)
	if text == "" || t.verbosity == thoughtsSummary {
		return nil, nil
	}
	t.nextSequence++
	p := deltaPayload{t.agentID, text, t.nextSequence - 1, t.verbosity}
	return []wire.Draft{draft(wire.EventAgentReasoningDelta, t.nodeID, t.trust, p)}, nil
}

// close ends the redactor's stream, also after an aborted call.
func (t *thoughtRecorder) close() {
	if t != nil && t.scrub != nil {
		t.scrub.Close()
		t.scrub = nil
	}
}
