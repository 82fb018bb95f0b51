package project

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// Limits of the texts in a run's facts.
const (
	maxPreviewBytes = 200
	maxNameBytes    = maxMarkBytes
	// maxDecodedBytes limits the input value that a preview decodes; it has the beginning of a larger
	// one as JSON.
	maxDecodedBytes = 4 << 10
)

// noteFact keeps what the run's state does not.
func (r *Run) noteFact(e wire.Event) {
	if e.NodeID != "" {
		r.lastNode = e.NodeID
	}
	if e.Type == wire.EventProviderUsage && r.State.Cost.Model != "" {
		r.model = r.State.Cost.Model
		r.mark(store.MarkModel, r.model)
	}
}

// facts returns what lists show of the run and sort by.
func (r *Run) facts(waits *Waits) store.Facts {
	s := r.State
	f := store.Facts{Known: true, Model: cut(r.model, maxNameBytes), LastNode: cut(r.lastNode, maxNameBytes), Inputs: r.inputs}
	if s.Cost.Calls+s.Cost.Others > 0 {
		in, out := s.Cost.InputTokens, s.Cost.OutputTokens
		f.TokensIn, f.TokensOut = &in, &out
	}
	if usd := s.Cost.USD; s.Cost.PricedCalls > 0 && !math.IsInf(usd, 0) {
		f.Cost = &usd
	}
	f.DurationMs = elapsed(s.StartedAt, s.CompletedAt)
	if waits != nil && s.Status.Waiting() && waits.For != WaitsRun {
		f.WaitingSince = waits.Since
	}
	return f
}

func elapsed(from, to string) *int64 {
	start, err1 := time.Parse(time.RFC3339, from)
	end, err2 := time.Parse(time.RFC3339, to)
	if err1 != nil || err2 != nil {
		return nil
	}
	ms := max(0, end.Sub(start).Milliseconds())
	return &ms
}

// preview returns the beginning of a run's inputs on one line, as "name: value, name: value".
func preview(inputs map[string]json.RawMessage) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if b.Len() > maxPreviewBytes {
			break
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(line(cut(name, maxPreviewBytes)) + ": " + line(plain(inputs[name])))
	}
	return cut(b.String(), maxPreviewBytes)
}

// plain returns a value: the text of a string, otherwise its JSON.
func plain(raw json.RawMessage) string {
	if len(raw) > maxDecodedBytes {
		return string(raw[:maxPreviewBytes])
	}
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// line replaces white space and control characters, runs of them by one space.
func line(s string) string {
	s = cut(s, 2*maxPreviewBytes)
	return strings.Join(strings.FieldsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }), " ")
}

// ellipsis ends a text that was cut.
const ellipsis = "…"

// cut limits a text without cutting a character.
func cut(s string, most int) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if len(s) <= most {
		return s
	}
	end := most - len(ellipsis)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}
