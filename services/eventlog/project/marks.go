package project

import (
	"encoding/json"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// Limits of marks: names come from models and configs.
const (
	maxMarks     = 64
	maxMarkBytes = 256
)

// clarification is the kind whose envelopes become questions to a person.
const clarification = wire.KindClarificationRequest

// Found returns the marks not returned before, all of them for a loaded run, and the substitutions
// of the frames applied since.
func (r *Run) Found() (marks []store.Mark, substitutions []store.Substitution) {
	marks, substitutions = slices.Clone(r.marks[r.given:]), slices.Clone(r.substituted[r.givenSubstituted:])
	r.given, r.givenSubstituted = len(r.marks), len(r.substituted)
	return marks, substitutions
}

// Everything returns all marks and substitutions, also those that Found has returned.
func (r *Run) Everything() ([]store.Mark, []store.Substitution) { return r.marks, r.substituted }

// note adds the marks of an event.
func (r *Run) note(e wire.Event) {
	switch e.Type {
	case wire.EventProviderUsage:
		r.mark(store.MarkProvider, r.State.Cost.Provider)
	case wire.EventEnvelopeRefusal: // the provider may report no usage for it
		var p modelgate.Model
		_ = json.Unmarshal(e.Payload, &p) // an unreadable payload has no provider
		r.mark(store.MarkProvider, p.Provider)
	case wire.EventNodeFailed, wire.EventNodeRetried:
		r.noteFailure(e)
	case wire.EventClarificationRequested:
		if e.CausationID != "" { // otherwise a node asks, not a model
			r.mark(store.MarkKind, clarification)
		}
	case wire.EventLogAppended:
		r.noteDiscarded(e)
	case wire.EventInterruptResolved:
		r.noteAnswered(e)
	}
	if v := r.State.Envelopes[e.CausationID]; v != nil {
		r.mark(store.MarkKind, v.Kind)
	}
}

// noteFailure adds the provider of a failed call, and the kind of an envelope that its node's
// contract rejected.
func (r *Run) noteFailure(e wire.Event) {
	for _, f := range failuresOf(e) {
		r.mark(store.MarkProvider, f.Details.Provider)
		r.mark(store.MarkKind, f.Details.RefusedType)
	}
}

// noteAnswered adds the day of an answer. Copied events do not count: the fork's source was answered.
func (r *Run) noteAnswered(e wire.Event) {
	f := r.State.Record.Fork
	if r.State.Record.Replays() || f != nil && e.Sequence < f.Ends() {
		return
	}
	if at, err := time.Parse(wire.TimeLayout, e.Timestamp); err == nil {
		r.mark(store.MarkAnswered, at.UTC().Format(time.DateOnly))
	}
}

// noteDiscarded adds the kind of an envelope that its node's contract discarded.
func (r *Run) noteDiscarded(e wire.Event) {
	if e.CausationID == "" {
		return
	}
	var p struct {
		Fields struct {
			Kind        string `json:"kind"`
			RefusalMode string `json:"refusalMode"`
		} `json:"fields"`
	}
	if json.Unmarshal(e.Payload, &p) == nil && p.Fields.RefusalMode != "" {
		r.mark(store.MarkKind, p.Fields.Kind)
	}
}

func (r *Run) mark(name store.MarkName, value string) {
	m := store.Mark{Key: Key(r.ID), CreatedAt: r.createdAt, Name: name, Value: value}
	if value == "" || len(value) > maxMarkBytes || len(r.marks) == maxMarks || slices.Contains(r.marks, m) {
		return
	}
	r.marks = append(r.marks, m)
}

// noteSubstitution adds a substituted model. Events copied from a fork's source do not count,
// because the source made the decision; a replay calls no models.
func (r *Run) noteSubstitution(e wire.Event) {
	f := r.State.Record.Fork
	if e.Type != wire.EventModelSubstituted || r.State.Record.Replays() || f != nil && e.Sequence < f.Ends() {
		return
	}
	var p struct {
		NodeID           string   `json:"nodeId"`
		OriginalProvider string   `json:"originalProvider"`
		OriginalModel    string   `json:"originalModel"`
		FallbackProvider string   `json:"fallbackProvider"`
		FallbackModel    string   `json:"fallbackModel"`
		Missing          []string `json:"missingCapabilities"`
	}
	if json.Unmarshal(e.Payload, &p) != nil {
		return
	}
	r.substituted = append(r.substituted, store.Substitution{
		Key: Key(r.ID), Sequence: e.Sequence, At: e.Timestamp, NodeID: p.NodeID,
		Original: modelgate.Model{Provider: p.OriginalProvider, Model: p.OriginalModel},
		Fallback: modelgate.Model{Provider: p.FallbackProvider, Model: p.FallbackModel},
		Missing:  p.Missing,
	})
}
