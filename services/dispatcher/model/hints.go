package model

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// keepHints returns the members of a model's meta that advise how to show an envelope, and the paths
// of those that it drops. A hint is advice: a bad one never makes the envelope invalid (OpenWOP
// envelope contract §13). Members that the host decides are left out without a word.
func keepHints(given json.RawMessage) (kept map[string]json.RawMessage, dropped []string) {
	kept = map[string]json.RawMessage{}
	if len(given) == 0 || string(given) == "null" {
		return kept, nil
	}
	members := strictjson.Object(given)
	if members == nil {
		return kept, []string{"/meta"}
	}
	for name, raw := range members {
		switch name {
		case "source", "contentTrust", "ts", "traceparent":
		case "label":
			if text, ok := strictjson.String(raw); ok && utf8.RuneCountInString(text) <= maxLabel {
				kept[name] = raw
			} else if string(raw) != "null" {
				dropped = append(dropped, "/meta/label")
			}
		case "rendering":
			hint, bad := keepRendering(raw)
			if len(hint) > 0 {
				kept[name] = strictjson.Render(hint)
			}
			dropped = append(dropped, bad...)
		default:
			dropped = append(dropped, "/meta/*")
		}
	}
	slices.Sort(dropped)
	return kept, slices.Compact(dropped)
}

// maxLabel limits a label, in characters (OpenWOP envelope contract §2).
const maxLabel = 256

func keepRendering(given json.RawMessage) (kept map[string]json.RawMessage, dropped []string) {
	kept = map[string]json.RawMessage{}
	members := strictjson.Object(given)
	if members == nil && string(given) != "null" {
		return kept, []string{"/meta/rendering"}
	}
	for name, raw := range members {
		text, ok := strictjson.String(raw)
		switch {
		case string(raw) == "null":
		case !ok:
			dropped = append(dropped, renderingPath(name))
		case name == "display" && !slices.Contains(displays(), text):
			dropped = append(dropped, renderingPath(name))
		case !slices.Contains(renderingMembers(), name):
			dropped = append(dropped, renderingPath(name))
		default:
			kept[name] = raw
		}
	}
	return kept, dropped
}

// renderingPath names a member, but not one that only the model's answer names.
func renderingPath(name string) string {
	if slices.Contains(renderingMembers(), name) {
		return "/meta/rendering/" + name
	}
	return "/meta/rendering/*"
}

func renderingMembers() []string { return []string{"display", "mimeType", "lang", "alt", "title"} }

func displays() []string { return []string{"markdown", "code", "card", "image", "audio", "file"} }

// noteHints records which hints of an envelope were dropped.
func noteHints(out *outbox, dropped []string) {
	if len(dropped) == 0 {
		return
	}
	out.add(wire.EventLogAppended, discardedPayload{
		Level:   "debug",
		Message: "hints of an envelope dropped: they have no meaning, or no valid value",
		NodeID:  out.nodeID,
		Fields:  map[string]any{"paths": dropped},
	})
}
