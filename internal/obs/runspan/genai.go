package runspan

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
)

// Attributes of the semantic conventions for generative AI.
const (
	genOperation     = "gen_ai.operation.name"
	genProvider      = "gen_ai.provider.name"
	genRequestModel  = "gen_ai.request.model"
	genResponseModel = "gen_ai.response.model"
	genFinish        = "gen_ai.response.finish_reasons"
	genInput         = "gen_ai.usage.input_tokens"
	genOutput        = "gen_ai.usage.output_tokens"
	genReasoning     = "gen_ai.usage.reasoning.output_tokens"
	genCacheRead     = "gen_ai.usage.cache_read.input_tokens"
	genCacheWrite    = "gen_ai.usage.cache_creation.input_tokens"
	genWorkflow      = "gen_ai.workflow.name"
	genAgent         = "gen_ai.agent.name"
	genTool          = "gen_ai.tool.name"
	genToolType      = "gen_ai.tool.type"
	genInstructions  = "gen_ai.system_instructions"
	genMessagesIn    = "gen_ai.input.messages"
	genMessagesOut   = "gen_ai.output.messages"
	errorType        = "error.type"
)

// Operations of the conventions.
const (
	operationChat     = "chat"
	operationContent  = "generate_content"
	operationTool     = "execute_tool"
	operationAgent    = "invoke_agent"
	operationWorkflow = "invoke_workflow"
)

// Providers whose conventional name, or way to count, differs.
const (
	providerGemini    = "gemini"
	providerAnthropic = "anthropic"
)

// Options complete the data of a fold.
type Options struct {
	// Definition is the definition that the run is pinned to; nil leaves out what only it has.
	Definition Definition
	// APIs are the interfaces of providers; nil names providers by their ids.
	APIs APIs
	// Content adds the texts of model calls that the log has.
	Content bool
}

// Definition has data about the nodes of a run that events do not contain.
type Definition interface {
	// Model returns the model that a node requests; empty if unknown.
	Model(nodeID string) (provider, model string)
	// Peer returns the tool or the agent that a node calls; empty if it calls none.
	Peer(typeID, nodeID string) (tool, agent string)
}

// modelName names a model.
type modelName struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// modelCall is a call whose answer arrived.
type modelCall struct {
	span *Span
	at   time.Time
	said answerText
}

// APIs returns the interface of a provider's server, as in --provider-settings; empty if it is unknown. A
// nil APIs knows none.
type APIs func(provider string) (api string)

// clouds are the names in the conventions of interfaces that only one cloud has.
var clouds = map[string]string{"azure-openai": "azure.ai.openai", "bedrock": "aws.bedrock", apiVertex: "gcp.vertex_ai"}

// apiVertex is the interface of Gemini in Google's cloud.
const apiVertex = "vertex"

func (a APIs) of(provider string) string {
	if a == nil {
		return ""
	}
	return a(provider)
}

// ProviderName returns the name of a provider in the conventions.
func (a APIs) ProviderName(id string) string {
	if name := clouds[a.of(id)]; name != "" {
		return name
	}
	if id == providerGemini {
		return "gcp.gemini"
	}
	return id
}

// OperationName returns the operation of a call of a provider in the conventions.
func (a APIs) OperationName(provider string) string {
	if provider == providerGemini || a.of(provider) == apiVertex {
		return operationContent
	}
	return operationChat
}

// addGenAI adds the attributes of a model call.
func (f *Fold) addGenAI(to map[string]any, p event) {
	input := p.InputTokens
	if p.Provider == providerAnthropic { // it counts cached tokens apart
		input += p.CacheReadTokens + p.CacheWriteTokens
	}
	to[genOperation], to[genProvider] = f.options.APIs.OperationName(p.Provider), f.options.APIs.ProviderName(cut(p.Provider))
	to[genInput], to[genOutput] = input, p.OutputTokens
	if p.Model != "" {
		to[genResponseModel] = cut(p.Model)
	}
	if p.CacheReadTokens > 0 {
		to[genCacheRead] = p.CacheReadTokens
	}
	if p.CacheWriteTokens > 0 {
		to[genCacheWrite] = p.CacheWriteTokens
	}
	if asked := f.requestedModel(p.NodeID); asked.Provider == p.Provider && asked.Model != "" {
		to[genRequestModel] = cut(asked.Model)
	}
}

// requestedModel returns the model that a node's next call requests.
func (f *Fold) requestedModel(nodeID string) modelName {
	if m, ok := f.requested[nodeID]; ok {
		return m
	}
	if f.options.Definition == nil {
		return modelName{}
	}
	provider, model := f.options.Definition.Model(nodeID)
	return modelName{provider, model}
}

// substitute notes the model that replaces a node's own. A withheld one stays unknown.
func (f *Fold) substitute(payload []byte, nodeID string) {
	var p struct {
		Provider string `json:"fallbackProvider"`
		Model    string `json:"fallbackModel"`
	}
	_ = json.Unmarshal(payload, &p) // an unreadable payload names none
	if p.Provider == modelgate.Withheld {
		p.Model = ""
	}
	f.requested[nodeID] = modelName{p.Provider, p.Model}
}

// retryWith notes the model that is called next because the called one failed.
func (f *Fold) retryWith(payload []byte, nodeID string) {
	var p struct {
		Next *modelName `json:"next"`
	}
	if json.Unmarshal(payload, &p) == nil && p.Next != nil {
		f.requested[nodeID] = *p.Next
	}
}

// addTool adds the attributes of a node that calls a tool or an agent.
func (f *Fold) addTool(s *Span, typeID, nodeID string) {
	if f.options.Definition == nil {
		return
	}
	tool, agent := f.options.Definition.Peer(typeID, nodeID)
	switch {
	case tool != "":
		s.Attributes[genOperation], s.Attributes[genTool], s.Attributes[genToolType] = operationTool, cut(tool), "extension"
	case agent != "":
		s.Attributes[genOperation], s.Attributes[genAgent] = operationAgent, cut(agent)
	}
}

// endCall completes the span of a node's last model call: the event after it says how the answer
// ended. All other answers are complete.
func (f *Fold) endCall(next wire.EventType, p event) {
	if next.Terminal() {
		for _, id := range slices.Sorted(maps.Keys(f.nodes)) {
			f.finishCall(f.nodes[id], next, p)
		}
		return
	}
	if n := f.nodes[p.NodeID]; n != nil {
		f.finishCall(n, next, p)
	}
}

func (f *Fold) finishCall(n *node, next wire.EventType, p event) {
	c := n.answered
	if c == nil {
		return
	}
	n.answered = nil
	reason := c.said.finish
	switch {
	case next == wire.EventEnvelopeTruncated && p.StopReason == "max_tokens":
		reason = "length"
	case next == wire.EventEnvelopeRefusal:
		reason = "content_filter"
	case next == wire.EventEnvelopeTruncated: // another reason, which the span event has
	case reason == "":
		reason = "stop"
	}
	if reason != "" {
		c.span.Attributes[genFinish] = []string{cut(reason)}
	}
	if f.options.Content {
		c.said.addTo(c.span.Attributes, reason)
	}
	f.finish(c.span, c.at, OK, "")
}
