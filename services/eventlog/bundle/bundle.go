// Package bundle makes the debug bundle of a run: what somebody needs to find out
// what went wrong, without what the run was about.
//
// Content is omitted, not masked: of every event only the members that tell its
// course are kept, by name. What a workflow carried from its inputs into
// variables, outputs, prompts or answers is in none of them (OpenWOP host
// contract §10.4).
package bundle

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/runspan"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

const (
	// Version is the version of the bundle's format.
	Version = "1.0"
	// MaxBytes is the largest bundle.
	MaxBytes = 8 << 20
	mode     = "omit"
)

// Reasons of a truncation.
const (
	TruncatedToSize   = "events_truncated_to_size_cap"
	TruncatedToNumber = "events_truncated_to_max_events"
)

// Host names the host that made the bundle.
type Host struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Input is a run as the log tells it.
type Input struct {
	State  *runstate.State
	Events []wire.Event
	Host   Host
	Now    time.Time
	// MaxEvents is how many events are wanted at most; 0: all.
	MaxEvents int
}

// document is the bundle; debug-bundle.schema.json.
type document struct {
	BundleVersion    string             `json:"bundleVersion"`
	GeneratedAt      string             `json:"generatedAt"`
	Host             Host               `json:"host"`
	Run              *runstate.Snapshot `json:"run"`
	Events           []json.RawMessage  `json:"events"`
	Spans            []span             `json:"spans"`
	Metrics          metrics            `json:"metrics"`
	RedactionApplied bool               `json:"redactionApplied"`
	RedactionMode    string             `json:"redactionMode"`
	Truncated        bool               `json:"truncated,omitempty"`
	TruncatedReason  string             `json:"truncatedReason,omitempty"`
}

type metrics struct {
	Cost       *runstate.CostRollup `json:"openwopCost,omitempty"`
	NodeCount  int                  `json:"nodeCount"`
	EventCount int                  `json:"eventCount"`
}

// Build renders the bundle.
func Build(in Input) ([]byte, error) {
	d := document{
		BundleVersion: Version, GeneratedAt: wire.FormatTime(in.Now), Host: in.Host, Run: course(in.State),
		Events: make([]json.RawMessage, 0, len(in.Events)), Spans: []span{}, RedactionApplied: true, RedactionMode: mode,
	}
	fold, told := runspan.New(in.State.Record), newTold(in.State)
	for _, e := range in.Events {
		fold.Apply(e)
		d.Events = append(d.Events, told.event(e))
	}
	for _, s := range fold.All() {
		d.Spans = append(d.Spans, spanOf(s))
	}
	d.Metrics.NodeCount = len(in.State.Nodes)
	if d.Run.Metrics != nil {
		d.Metrics.Cost = &d.Run.Metrics.Cost
	}
	if in.MaxEvents > 0 && len(d.Events) > in.MaxEvents {
		d.truncate(in.MaxEvents, TruncatedToNumber)
	}
	return d.render()
}

// render shortens the events until the bundle fits.
func (d *document) render() ([]byte, error) {
	for {
		d.Metrics.EventCount = len(d.Events)
		b, err := json.Marshal(d)
		if err != nil {
			return nil, fmt.Errorf("render debug bundle: %w", err)
		}
		over := len(b) - MaxBytes
		if over <= 0 || len(d.Events) <= 1 {
			return b, nil
		}
		d.truncate(d.fitting(over), TruncatedToSize)
	}
}

// fitting is how many events are left when at least over bytes go.
func (d *document) fitting(over int) int {
	n := len(d.Events)
	for over > 0 && n > 1 {
		n--
		over -= len(d.Events[n-1]) // the one before the last, which stays
	}
	return n
}

// truncate drops events from the end of the log, but keeps the last: it says how
// the run ended.
func (d *document) truncate(n int, reason string) {
	last := d.Events[len(d.Events)-1]
	d.Events = append(d.Events[:n-1:n-1], last)
	d.Truncated, d.TruncatedReason = true, reason
}

// course is the run's snapshot without what the run was about.
func course(s *runstate.State) *runstate.Snapshot {
	v := s.Snapshot()
	v.Inputs, v.Variables = map[string]json.RawMessage{}, map[string]json.RawMessage{}
	v.Outputs, v.Metadata, v.Configurable = nil, nil, nil
	told := newTold(s)
	for id, n := range v.NodeStates {
		n.Outputs, n.Error = nil, told.snapshotError(n.Error)
		v.NodeStates[id] = n
	}
	v.Error = told.snapshotError(v.Error)
	return v
}

// told knows what the run was told, for the only texts that are kept: messages
// of errors. One that repeats an input is left out.
type told struct{ texts []string }

// minText is the shortest input whose mention is looked for.
const minText = 4

func newTold(s *runstate.State) told {
	var t told
	for _, inputs := range []map[string]json.RawMessage{s.Record.Inputs, s.Variables} {
		for _, raw := range inputs {
			var v any
			if json.Unmarshal(raw, &v) == nil {
				t.collect(v)
			}
		}
	}
	return t
}

func (t *told) collect(v any) {
	switch v := v.(type) {
	case string:
		if len(v) >= minText {
			t.texts = append(t.texts, v)
		}
	case []any:
		for _, x := range v {
			t.collect(x)
		}
	case map[string]any:
		for name, x := range v {
			t.collect(name)
			t.collect(x)
		}
	}
}

// omitted stands for a message that repeats an input.
const omitted = "(omitted: it repeats an input)"

func (t *told) message(s string) string {
	for _, text := range t.texts {
		if strings.Contains(s, text) {
			return omitted
		}
	}
	return s
}

func (t *told) snapshotError(e *runstate.SnapshotError) *runstate.SnapshotError {
	if e == nil {
		return nil
	}
	return &runstate.SnapshotError{Code: e.Code, Message: t.message(e.Message)}
}
