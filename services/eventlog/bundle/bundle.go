// Package bundle builds the debug bundle of a run: the data needed to diagnose it, without its
// content.
//
// Content is omitted, not masked: of every event only listed members that describe the course of
// the run are kept. Data that a workflow moves from inputs into variables, outputs, prompts or
// answers is in none of them (OpenWOP host contract §10.4).
package bundle

import (
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
)

const (
	// Version is the version of the bundle's format.
	Version = "1.0"
	// MaxBytes is the maximum size of a bundle (OpenWOP host contract §10.4).
	MaxBytes = 8 << 20
	// WholeBytes is the maximum size of a bundle for an archive, which must have all events. A message
	// between services has 64 MiB.
	WholeBytes = 56 << 20
	mode       = "omit"
)

// Reasons of a truncation.
const (
	TruncatedToSize   = "events_truncated_to_size_cap"
	TruncatedToNumber = "events_truncated_to_max_events"
)

// Host identifies the host that built the bundle.
type Host struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Input is a run as recorded in the log.
type Input struct {
	State  *runstate.State
	Events []wire.Event
	Host   Host
	Now    time.Time
	// MaxEvents limits the events; 0 means no limit.
	MaxEvents int
	// MaxBytes limits the bundle; 0, or more than the constant, means the constant.
	MaxBytes int
	// Whole raises the limit to WholeBytes.
	Whole bool
}

func (in Input) limit() int {
	if in.Whole {
		return WholeBytes
	}
	if in.MaxBytes < 1 || in.MaxBytes > MaxBytes {
		return MaxBytes
	}
	return in.MaxBytes
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
	Assets           []asset            `json:"assets,omitempty"`
	View             *view.Run          `json:"view"`
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
	filter := newInputFilter(in.State)
	d := &document{
		BundleVersion: Version, GeneratedAt: wire.FormatTime(in.Now), Host: in.Host, Run: filter.course(in.State),
		Spans: filter.spans(in.State.Record, in.Events), RedactionApplied: true, RedactionMode: mode,
	}
	// The count is that of the run, also if the bundle has fewer events (OpenWOP host contract §10.4).
	d.Metrics.NodeCount, d.Metrics.EventCount = len(in.State.Nodes), len(in.Events)
	if d.Run.Metrics != nil {
		d.Metrics.Cost = &d.Run.Metrics.Cost
	}
	f := fitting{document: d, filter: filter, rec: in.State.Record, limit: in.limit()}
	f.take(in.Events)
	if in.MaxEvents > 0 && len(f.kept) > in.MaxEvents {
		f.shorten(in.MaxEvents, TruncatedToNumber)
	}
	return f.render()
}
