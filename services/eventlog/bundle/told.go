package bundle

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/runspan"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// told knows what the run was told, for the only texts that are kept: messages
// of errors, and tags. One that repeats an input is left out.
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

// message is a text that somebody wrote, as far as it may be shown.
func (t *told) message(s string) string {
	for _, text := range t.texts {
		if strings.Contains(s, text) {
			return omitted
		}
	}
	return clip(unsigned(s))
}

func (t *told) messages(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, t.message(s))
	}
	return out
}

// maxText is the longest text in a bundle, in bytes: it tells a course, and no
// single text may take the room of the rest.
const maxText = 4 << 10

const cutMark = "… (cut)"

// clip shortens a text to whole characters.
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

func (t *told) snapshotError(e *runstate.SnapshotError) *runstate.SnapshotError {
	if e == nil {
		return nil
	}
	return &runstate.SnapshotError{Code: e.Code, Message: t.message(e.Message)}
}

// course is the run's snapshot without what the run was about.
func (t *told) course(s *runstate.State) *runstate.Snapshot {
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

// spans are those that the events tell of.
func (t *told) spans(rec *wire.RunRecord, events []wire.Event) []span {
	fold := runspan.New(rec)
	for _, e := range events {
		fold.Apply(e)
	}
	out := []span{}
	for _, s := range fold.All() {
		out = append(out, t.span(s))
	}
	return out
}
