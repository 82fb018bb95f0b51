package model

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/node/media"
	"waybill.dev/waybill/services/dispatcher/prompt"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
)

// NodeConfig is the config of a model node.
type NodeConfig = config

// ReadConfig reads the config of a model node. Unknown members are ignored.
func ReadConfig(raw json.RawMessage) (c NodeConfig, err error) {
	if len(raw) > 0 {
		err = strictjson.Read(raw, &c)
	}
	return c, err
}

// config is the config of a model node. Registration rejects unknown members; they are ignored here,
// because a definition may be older. A test compares the members with those of the schema.
type config struct {
	Provider     string          `json:"provider"`
	Model        string          `json:"model"`
	System       string          `json:"system"`
	Prompt       string          `json:"prompt"`
	EnvelopeType string          `json:"envelopeType"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	MaxTokens    int             `json:"maxTokens"`
	Temperature  *float64        `json:"temperature"`
	TopP         *float64        `json:"topP"`
	Seed         *int64          `json:"seed"`
	Stop         []string        `json:"stop"`
	// Turn is the form of an answer: auto, payload or envelopes; empty is auto.
	Turn string `json:"turn"`
	// RepairJSON repairs an answer that is almost JSON.
	RepairJSON bool `json:"repairJson"`
	// Partials records the valid part of an answer while it arrives.
	Partials bool `json:"partials"`
	// Thoughts requests that the model's thinking is shown, if it has any.
	Thoughts         bool                       `json:"thoughts"`
	ExpectsStreaming *bool                      `json:"expectsStreaming"`
	Contract         *workflow.EnvelopeContract `json:"envelopeContract"`

	// Timeouts are the node's own time limits of a call.
	Timeouts limit.Millis `json:"timeouts"`
	// OnError names the models to call if the node's own fails.
	OnError limit.OnError `json:"onError"`
}

// maxTokens exceeds the limit of every model. It keeps the budget within an int, including its
// growth after truncations.
const maxTokens = 1 << 30

// overlay holds the reserved keys of a run's configurable that affect a call. Both flat dotted
// names and the nested form are read (OpenWOP host contract §2.3).
type overlay struct {
	Provider     string          `json:"ai.provider"`
	Model        string          `json:"ai.model"`
	LegacyModel  string          `json:"model"`
	Temperature  *float64        `json:"temperature"`
	MaxTokens    float64         `json:"maxTokens"`
	Verbosity    string          `json:"reasoningVerbosity"`
	MockProvider json.RawMessage `json:"mockProvider"`
	AI           struct {
		Provider string `json:"provider"`
		Model    string `json:"model"`
	} `json:"ai"`
}

// Defaults is the model of nodes that name none.
type Defaults struct {
	Provider  string
	Model     string
	MaxTokens int
}

// configs caches parsed configs. A node's config is read when the run starts, when the gate chooses
// its model, and when the model is called.
type configs struct {
	cache[[sha256.Size]byte, config]
}

// parse reads a config. The result is shared: callers may only assign its top-level fields, on
// their copy.
func (c *configs) parse(raw json.RawMessage) (config, *wire.NodeError) {
	if len(raw) == 0 {
		return config{}, nil
	}
	parsed, err := c.getOrCompile(sha256.Sum256(raw), func() (parsed config, size int, err error) {
		err = strictjson.Read(raw, &parsed)
		return parsed, len(raw), err
	})
	if err != nil {
		return parsed, node.Invalid("/config: %s", jsonProblem(err))
	}
	return parsed, nil
}

func jsonProblem(err error) string {
	if te, ok := err.(*json.UnmarshalTypeError); ok { //nolint:errorlint // json returns it unwrapped
		return fmt.Sprintf("member %s has the wrong type: want %s", te.Field, te.Type)
	}
	return "not a JSON object"
}

// activeModel returns the model to call: the node's, else the run's, else the host's (OpenWOP
// envelope contract §16.3).
func (c config) activeModel(o overlay, d Defaults) modelgate.Model {
	m := modelgate.Model{Provider: firstNonEmpty(c.Provider, o.Provider, o.AI.Provider, d.Provider)}
	fallback := ""
	if m.Provider == d.Provider { // the default model belongs to the default provider
		fallback = d.Model
	}
	m.Model = firstNonEmpty(c.Model, o.Model, o.AI.Model, o.LegacyModel, fallback)
	return m
}

// newRequest builds the first request from config, overlay and material. Texts of templates replace
// the config's.
func (c config) newRequest(
	m *material, o overlay, d Defaults, composed *prompt.Composition,
) (provider.Request, *wire.NodeError) {
	active := c.activeModel(o, d)
	budget := firstPositive(c.MaxTokens, int(min(o.MaxTokens, maxTokens)), d.MaxTokens)
	req := provider.Request{
		Provider:    active.Provider,
		Model:       active.Model,
		System:      c.System,
		NodeID:      m.in.NodeID,
		Stop:        c.Stop,
		TopP:        c.TopP,
		Seed:        c.Seed,
		MaxTokens:   min(budget, maxTokens),
		Temperature: c.Temperature,
	}
	if req.Temperature == nil {
		req.Temperature = o.Temperature
	}
	if composed != nil && composed.HasSystem {
		req.System = composed.Sent.System
	}
	var bad *wire.NodeError
	req.Messages, bad = c.messages(m, composed)
	return req, bad
}

func firstNonEmpty(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func firstPositive(values ...int) int {
	for _, v := range values {
		if v > 0 {
			return v
		}
	}
	return 0
}

// messages returns the messages of the port, followed by the prompt and the assets as a user message.
func (c config) messages(m *material, composed *prompt.Composition) ([]provider.Message, *wire.NodeError) {
	var msgs []provider.Message
	if raw, ok := m.in.Ports[portMessages]; ok {
		var given []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if err := strictjson.Read(raw, &given); err != nil {
			return nil, node.Invalid("/inputs/messages: want an array of {role, content}")
		}
		for i, g := range given {
			if !slices.Contains([]string{"system", "user", "assistant", "tool"}, g.Role) {
				return nil, node.Invalid("/inputs/messages/%d/role: want system, user, assistant or tool", i)
			}
			msgs = append(msgs, m.fenceMessage(provider.Message{Role: g.Role, Content: m.assets.inMessage(g.Content)}))
		}
	}
	own := len(msgs)
	if c.Prompt != "" {
		text, bad := render(c.Prompt, m)
		if bad != nil {
			return nil, bad
		}
		msgs = append(msgs, userMessage(text))
	}
	if composed != nil && composed.HasUser {
		msgs = append(msgs, userMessage(composed.Sent.User))
	}
	if len(msgs) == 0 && (len(m.items) == 0 || m.hasTexts()) { // without messages and prompt, the ports are the message
		msgs = append(msgs, userMessage(m.portsText()))
	}
	return m.addAssets(msgs, own), nil
}

// portMessages is the name of the port that holds the conversation.
const portMessages = media.PortMessages

func userMessage(text string) provider.Message {
	return provider.Message{Role: "user", Content: wire.AppendString(nil, text)}
}

// maxRendered limits a rendered prompt, in bytes, because a template can name a long value many
// times. It exceeds the context of every model. The prompt is not recorded.
const maxRendered = 16 << 20

// render replaces each {{name}} of the template by a port, else by a variable. Strings are inserted
// unquoted, other values as JSON.
func render(template string, from *material) (string, *wire.NodeError) {
	var missing []string
	room, tooLong := maxRendered-len(template), ""
	out := media.Placeholder.ReplaceAllStringFunc(template, func(m string) string {
		if tooLong != "" {
			return ""
		}
		name := media.Placeholder.FindStringSubmatch(m)[1]
		text, ok := from.lookup(name)
		if !ok {
			missing = append(missing, name)
		}
		if room -= len(text); room < 0 {
			tooLong = name
			return ""
		}
		return text
	})
	if tooLong != "" {
		return "", &wire.NodeError{
			Code: string(fault.ContentTooLong),
			Message: fmt.Sprintf("/config/prompt: the prompt has more than %d bytes with the value of %q; "+
				"give it a shorter one, or name it less often", maxRendered, tooLong),
		}
	}
	if len(missing) > 0 {
		return "", &wire.NodeError{
			Code:    string(fault.PromptVariable),
			Message: "/config/prompt: no port and no variable is named " + strings.Join(missing, ", "),
		}
	}
	return out, nil
}
