package bundle

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// inputFilter holds the run's inputs, to filter the only texts that are kept: error messages and tags. A
// text that repeats an input is dropped.
type inputFilter struct{ texts []string }

// minText is the minimum length of an input to search for.
const minText = 4

func newInputFilter(s *runstate.State) inputFilter {
	var t inputFilter
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

func (t *inputFilter) collect(v any) {
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

// omitted replaces a message that repeats an input.
const omitted = "(omitted: it repeats an input)"

// message filters a text written by a person or a model.
func (t *inputFilter) message(s string) string {
	for _, text := range t.texts {
		if strings.Contains(s, text) {
			return omitted
		}
	}
	return clip(unsigned(s))
}

func (t *inputFilter) messages(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, t.message(s))
	}
	return out
}

// maxText limits a text in a bundle, in bytes, so that no single text crowds out the rest.
const maxText = 4 << 10

const cutMark = "… (cut)"

// clip shortens a text at a character boundary.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + cutMark
}

func (t *inputFilter) snapshotError(e *runstate.SnapshotError) *runstate.SnapshotError {
	if e == nil {
		return nil
	}
	return &runstate.SnapshotError{Code: e.Code, Message: t.message(e.Message)}
}

// course returns the run's snapshot without its content.
func (t *inputFilter) course(s *runstate.State) *runstate.Snapshot {
	v := s.Snapshot()
	v.Inputs, v.Variables = map[string]json.RawMessage{}, map[string]json.RawMessage{}
	v.Outputs, v.Metadata, v.Configurable, v.Channels = nil, nil, nil, nil
	v.Tags = t.messages(v.Tags)
	for id, n := range v.NodeStates {
		n.Outputs, n.Error = nil, t.snapshotError(n.Error)
		v.NodeStates[id] = n
	}
	v.Error = t.snapshotError(v.Error)
	return v
}

// spans returns the spans derived from the events.
func (t *inputFilter) spans(rec *wire.RunRecord, events []wire.Event) []span {
	fold := runspan.New(rec, runspan.Options{})
	for _, e := range events {
		fold.Apply(e)
	}
	out := []span{}
	for _, s := range fold.All() {
		out = append(out, t.span(s))
	}
	return out
}
