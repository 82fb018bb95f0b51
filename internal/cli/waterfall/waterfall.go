// Package waterfall draws a run as text: one line per node, with one bar per attempt.
package waterfall

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/show"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// Chart is the state of a run after the events added so far.
type Chart struct {
	RunID string

	nodes  []*node
	byID   map[string]*node
	status string
	began  time.Time
	last   wire.Event
	events int
}

type node struct {
	id, status string
	bars       []bar
	marks      []string
	asks       *question // nil if the node has no open interrupt
}

// question is an open interrupt of a node.
type question struct {
	Kind interrupt.Kind  `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// bar is one attempt or one wait; to is zero while it is open.
type bar struct {
	from, to time.Time
	wait     bool
}

// New returns an empty chart of a run.
func New(runID string) *Chart {
	return &Chart{RunID: runID, byID: map[string]*node{}, status: string(wire.StatusPending)}
}

// marks are the signs of events at a node. The help of `run watch` explains them.
var marks = map[wire.EventType]string{
	"node.retried":                  "↻",
	"envelope.retry.attempted":      "↻",
	"envelope.truncated":            "✂",
	"envelope.refusal":              "⃠",
	"envelope.recovery.applied":     "⌁",
	"envelope.nlToFormat.engaged":   "NL",
	"model.capability.substituted":  "A→B",
	"model.capability.insufficient": "∅",
	"cap.breached":                  "⛔",
	"interrupt.requested":           "?",
}

// markOf returns the sign of an event; empty for none.
func markOf(e wire.Event) string {
	var p struct {
		Reason string `json:"reason"`
	}
	if e.Type == wire.EventNodeRetried && json.Unmarshal(e.Payload, &p) == nil && p.Reason == runstate.Branched {
		return "⑂"
	}
	return marks[e.Type]
}

// ends are the statuses of a node after an event.
var ends = map[wire.EventType]string{
	"node.completed": "completed", "node.failed": "failed", "node.skipped": "skipped", "node.cancelled": "cancelled",
	"node.suspended": "suspended", "node.retried": "retrying",
}

// statuses are the statuses of a run after an event.
var statuses = map[wire.EventType]string{
	wire.EventRunStarted:   "running",
	wire.EventRunCompleted: "completed",
	wire.EventRunFailed:    "failed",
	wire.EventRunCancelled: "cancelled",
	wire.EventRunPaused:    "paused",
	"run.resumed":          "running",
}

// Add adds the next event.
func (c *Chart) Add(e wire.Event) {
	at, err := time.Parse(time.RFC3339, e.Timestamp)
	if err != nil {
		at = c.began
	}
	if c.events == 0 {
		c.began = at
	}
	c.events++
	c.last = e
	if s, ok := statuses[e.Type]; ok {
		c.status = s
	}
	if e.NodeID == "" {
		return
	}
	n := c.node(e.NodeID)
	if m := markOf(e); m != "" {
		n.marks = append(n.marks, m)
	}
	switch e.Type {
	case wire.EventInterruptRequested:
		n.asks = &question{}
		_ = json.Unmarshal(e.Payload, n.asks) // an invalid payload is still an open interrupt
	case wire.EventInterruptResolved:
		n.asks = nil
	case "node.started":
		n.close(at)
		n.status, n.bars = "running", append(n.bars, bar{from: at})
	case "node.resumed":
		n.close(at)
		n.status, n.bars = "running", append(n.bars, bar{from: at})
	}
	if s, ok := ends[e.Type]; ok {
		n.close(at)
		n.status = s
		if e.Type != "node.suspended" {
			n.asks = nil
		}
		if e.Type == "node.suspended" {
			n.bars = append(n.bars, bar{from: at, wait: true})
		}
	}
}

// waits returns the node whose answer the run waits for; nil if the run does not wait.
func (c *Chart) waits() *node {
	if c.status != "running" {
		return nil
	}
	var first *node
	for _, n := range c.nodes {
		switch {
		case n.status == "running" || n.status == "retrying":
			return nil
		case n.asks != nil && n.status == "suspended" && first == nil:
			first = n
		}
	}
	return first
}

// Waiting describes the answer that the run waits for and how to give it; empty if there is none.
func (c *Chart) Waiting() []string {
	n := c.waits()
	if n == nil {
		return nil
	}
	return []string{
		fmt.Sprintf("waits for an answer at %s (%s): %s", n.id, n.asks.Kind, show.Question(string(n.asks.Kind), n.asks.Data)),
		fmt.Sprintf("how to answer: waybill interrupt show %s %s", c.RunID, n.id),
	}
}

func (c *Chart) node(id string) *node {
	n, ok := c.byID[id]
	if !ok {
		n = &node{id: id, status: "pending"}
		c.byID[id] = n
		c.nodes = append(c.nodes, n)
	}
	return n
}

func (n *node) close(at time.Time) {
	if i := len(n.bars) - 1; i >= 0 && n.bars[i].to.IsZero() {
		n.bars[i].to = at
	}
}

// Sizes of the drawing.
const (
	nameWidth = 20
	leastBars = 10
	tookWidth = 8
)

// Lines draws the chart at a time, in the given width and height.
func (c *Chart) Lines(now time.Time, width, height int, color bool) []string {
	shown, hidden := c.nodes, 0
	status, below := c.status, []string{fmt.Sprintf("%d %s %s %s", c.last.Sequence, c.last.Type, term.Clean(c.last.NodeID), show.Detail(c.last))}
	if n := c.waits(); n != nil {
		status, below = string(n.asks.Kind.Status()), c.Waiting()
	}
	if room := height - 2 - len(below); height > 0 && len(shown) > room {
		hidden = len(shown) - max(room, 0)
		shown = shown[hidden:]
	}
	var out []string
	if hidden > 0 {
		out = append(out, fmt.Sprintf("  … %d nodes before", hidden))
	}
	total := max(now.Sub(c.began), time.Millisecond)
	names := 0
	for _, n := range shown {
		names = max(names, min(utf8.RuneCountInString(n.id), nameWidth))
	}
	bars := max(width-names-tookWidth-12, leastBars)
	for _, n := range shown {
		out = append(out, c.line(n, now, total, names, bars, color))
	}
	word := status
	if color {
		word = term.Paint(word, word)
	}
	foot := fmt.Sprintf("%s %s  %s  %d events  %s", term.Glyph(status), word, c.RunID, c.events, show.Duration(now.Sub(c.began)))
	out = append(out, foot)
	for _, line := range below {
		out = append(out, render.Cut("  "+term.Clean(line), width))
	}
	return out
}

func (c *Chart) line(n *node, now time.Time, total time.Duration, names, width int, color bool) string {
	cells := []rune(strings.Repeat(" ", width))
	var took time.Duration
	for _, b := range n.bars {
		to := b.to
		if to.IsZero() {
			to = now
		}
		took += to.Sub(b.from)
		from := int(int64(width) * int64(b.from.Sub(c.began)) / int64(total))
		end := int(int64(width) * int64(to.Sub(c.began)) / int64(total))
		from = min(max(from, 0), width-1)
		end = min(max(end, from+1), width) // at least one column
		for i := from; i < end; i++ {
			cells[i] = '█'
			if b.wait {
				cells[i] = '░'
			}
		}
	}
	bar, name := string(cells), render.Cut(term.Clean(n.id), names)
	if color {
		bar = term.Paint(bar, n.status)
	}
	length := ""
	if len(n.bars) > 0 {
		length = show.Duration(took)
	}
	text := fmt.Sprintf("%s %-*s %s %*s %s", term.Glyph(n.status), names, name, bar, tookWidth, length, counted(n.marks))
	return strings.TrimRight(text, " ")
}

// counted returns each mark once, with its count if it is repeated.
func counted(marks []string) string {
	var out []string
	seen := map[string]int{}
	for _, m := range marks {
		seen[m]++
	}
	for _, m := range marks {
		n := seen[m]
		delete(seen, m)
		switch {
		case n == 1:
			out = append(out, m)
		case n > 1:
			out = append(out, fmt.Sprintf("%s%d", m, n))
		}
	}
	return strings.Join(out, " ")
}
