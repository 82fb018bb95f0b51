package media

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/node"
)

// The input ports of a model node with a meaning of their own.
const (
	// PortMedia holds assets that are parts of the prompt, without a place in its text: one, or a list.
	PortMedia = "media"
	// PortMessages holds the conversation.
	PortMessages = "messages"
)

// Placeholder matches the name of an input in a node's prompt.
var Placeholder = regexp.MustCompile(`\{\{\s*([A-Za-z0-9_.-]+)\s*\}\}`)

// Prompt is what the inputs of a model node contribute to its prompt.
type Prompt struct {
	// Ports and Variables are the node's, with marks in place of assets.
	Ports, Variables map[string]json.RawMessage
	// Items are the assets, in the order of their marks.
	Items []Item
	// Parts are the kinds of the parts in the messages port that are not text.
	Parts []Kind
	// Unfit means that the port media contains anything else.
	Unfit bool
}

// config are the members of a node's config that decide which inputs its prompt contains.
type config struct {
	Prompt     string          `json:"prompt"`
	System     json.RawMessage `json:"systemPromptRef"`
	User       json.RawMessage `json:"userPromptRef"`
	Additional json.RawMessage `json:"additionalPromptRefs"`
	PromptID   json.RawMessage `json:"promptId"`
}

func (c config) hasTemplates() bool {
	return len(c.System) > 0 || len(c.User) > 0 || len(c.Additional) > 0 || len(c.PromptID) > 0
}

// Of returns the assets that the prompt of a model node contains: those of the port media and of the
// inputs that its prompt names. A node with templates, and one without prompt and messages, has those of
// all its ports. Assets in other inputs are only described.
func Of(in node.Input) Prompt {
	p := Prompt{Ports: in.Ports, Variables: in.Variables, Parts: messageParts(in.Ports[PortMessages])}
	if !holdsAny(in) {
		return p
	}
	p.Ports, p.Variables = maps.Clone(in.Ports), maps.Clone(in.Variables)
	c := counter{}
	take := func(values map[string]json.RawMessage, name, from string, untrusted bool) {
		values[name] = replace(values[name], func(i Item) string {
			i.From, i.Untrusted = from+name, untrusted
			p.Items = append(p.Items, i)
			return i.mark(c.next(i.Kind))
		})
	}
	used := map[string]bool{PortMessages: true}
	port := func(name string) {
		if _, ok := p.Ports[name]; ok && !used[name] {
			used[name] = true
			take(p.Ports, name, "/inputs/", in.UntrustedPorts[name])
		}
	}
	port(PortMedia)
	names, all := namesIn(in)
	for _, name := range names {
		if _, isPort := p.Ports[name]; isPort || used[name] {
			port(name)
		} else if _, ok := p.Variables[name]; ok {
			used[name] = true
			take(p.Variables, name, "/variables/", in.UntrustedVariables[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.Ports)) {
		if all {
			port(name)
		} else if !used[name] {
			p.Ports[name] = Describe(in.Ports[name])
		}
	}
	for name, raw := range in.Variables {
		if !used[name] {
			p.Variables[name] = Describe(raw)
		}
	}
	p.Unfit = !isMedia(in.Ports[PortMedia])
	return p
}

// namesIn returns the inputs that a node's prompt names. all means that the prompt may contain every
// port.
func namesIn(in node.Input) (names []string, all bool) {
	var c config
	_ = strictjson.Read(in.Config, &c) // an unreadable config fails the node when it starts
	for _, m := range Placeholder.FindAllStringSubmatch(c.Prompt, -1) {
		names = append(names, m[1])
	}
	_, talks := in.Ports[PortMessages]
	return names, c.hasTemplates() || c.Prompt == "" && !talks
}

// holdsAny reports whether an input may contain an asset, or the port media is there.
func holdsAny(in node.Input) bool {
	if _, ok := in.Ports[PortMedia]; ok {
		return true
	}
	for _, values := range []map[string]json.RawMessage{in.Ports, in.Variables} {
		for _, raw := range values {
			if mayContain(raw) {
				return true
			}
		}
	}
	return false
}

// isMedia reports whether the value of the port media is an asset, an envelope, or a list of these.
// Envelopes without an asset are left out.
func isMedia(raw json.RawMessage) bool {
	if len(raw) == 0 || string(raw) == "null" {
		return true
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil { // one asset
		list = []json.RawMessage{raw}
	}
	return !slices.ContainsFunc(list, func(v json.RawMessage) bool {
		_, asset := readItem(v, "")
		_, typed := strictjson.Member(v, "type")
		_, loaded := strictjson.Member(v, "payload")
		return !asset && (!typed || !loaded)
	})
}

// messageParts returns the kinds of the parts of messages that are not text.
func messageParts(raw json.RawMessage) (out []Kind) {
	for _, content := range contents(raw) {
		for _, block := range content {
			switch block.Type {
			case "image_url", "image":
				out = append(out, Image)
			case "input_audio", "audio":
				out = append(out, Audio)
			case "file":
				out = append(out, File)
			}
		}
	}
	return out
}

type block struct {
	Type string `json:"type"`
}

// contents returns the contents of messages that are lists of parts.
func contents(raw json.RawMessage) (out [][]block) {
	if len(raw) == 0 {
		return nil
	}
	var messages []struct {
		Content json.RawMessage `json:"content"`
	}
	if strictjson.Read(raw, &messages) != nil {
		return nil
	}
	for _, m := range messages {
		var parts []block
		if len(m.Content) > 0 && m.Content[0] == '[' && strictjson.Read(m.Content, &parts) == nil {
			out = append(out, parts)
		}
	}
	return out
}

// Capabilities lists what models can need for the parts of a prompt.
func Capabilities() []modelgate.Capability {
	return []modelgate.Capability{modelgate.VisionInput, modelgate.AudioInput}
}

// Capabilities returns what a model needs for the parts of the prompt.
func (p Prompt) Capabilities() []modelgate.Capability {
	kinds := slices.Clone(p.Parts)
	for _, i := range p.Items {
		kinds = append(kinds, i.Kind)
	}
	var out []modelgate.Capability
	if slices.Contains(kinds, Image) {
		out = append(out, modelgate.VisionInput)
	}
	if slices.Contains(kinds, Audio) {
		out = append(out, modelgate.AudioInput)
	}
	return out
}
