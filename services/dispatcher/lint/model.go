package lint

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/prompt"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

// modelNode is a node that calls a model.
type modelNode struct {
	n   *workflow.Node
	t   node.Type
	i   int
	at  string
	cfg model.NodeConfig
	// templates are the templates of its prompt.
	templates []prompt.Part
}

// path returns the path of a member of the config, or of the type if a pack sets the member.
func (m modelNode) path(member string) string {
	if isSet(m.n.Config, member) {
		return m.at + "/config/" + member
	}
	return m.at + "/typeId"
}

func (l *linter) checkModelNode(m modelNode) {
	var wrong []prompt.Problem
	m.templates, wrong = l.Prompts.Plan(m.t.Configure(m.n.Config))
	for _, p := range wrong {
		if l.Complete || !l.Prompts.Empty() || p.Code == fault.ValidationError { // else a host may have it
			l.problem(m.at+"/config"+p.Path, RulePrompt, "%s", strings.TrimSpace(p.Message))
		}
	}
	l.checkPrompt(m)
	l.checkPlaceholders(m.i, m.path("prompt"), m.cfg.Prompt)
	if names := placeholders(m.cfg.System); len(names) > 0 {
		l.warn(m.path("system"), RuleName, "{{%s}} is sent to the model as it is: placeholders are replaced in prompt only; move the sentence there", names[0])
	}
	l.checkTemplates(m)
	l.checkUnreadPorts(m)
	l.checkProvider(m)
	l.checkModel(m)
	l.checkTimeouts(m)
	l.checkCallTimes(m)
	l.checkAnswer(m)
	l.checkMessages(m)
}

// checkPrompt finds nodes whose model would be called with nothing. The providers of the protocol's tests
// answer without a prompt.
func (l *linter) checkPrompt(m modelNode) {
	if strings.TrimSpace(m.cfg.Prompt) != "" || len(l.ports[m.i]) > 0 {
		return
	}
	config := m.t.Configure(m.n.Config)
	if prompt.HasReference(config) {
		return // Plan has looked it up
	}
	lenient := m.cfg.Provider == mockProvider || l.TestSeams
	if id := bareTemplate(config); id != "" {
		if path := m.at + "/config/promptId"; !l.Prompts.Has(id) && !l.reported(path) {
			lenient = lenient || strings.HasPrefix(id, "conformance.") // of the protocol's tests
			l.report(l.Complete && !lenient, path, RulePrompt, "no template %q is known, so the model would be called with nothing; name the folder of templates with --prompts, or add prompt", id)
		}
		return
	}
	if m.cfg.System != "" {
		l.warn(m.at+"/config", RulePrompt, "the model gets the system text and an empty message; add prompt, or lead an edge to the node")
		return
	}
	lenient = lenient || isSet(config, "mcp") // the protocol's tests have nodes that only offer tools
	l.report(!lenient, m.at+"/config", RulePrompt, "the model would be called with nothing; add prompt, or lead an edge to the node, whose ports are the message then")
}

// bareTemplate returns a promptId that is an id alone; empty if there is none.
func bareTemplate(config json.RawMessage) string {
	var c struct {
		ID json.RawMessage `json:"promptId"`
	}
	_ = strictjson.Read(config, &c) // the schema has checked it
	id, _ := strictjson.String(c.ID)
	return id
}

// checkTemplates finds variables of templates that have no value.
func (l *linter) checkTemplates(m modelNode) {
	for _, part := range m.templates {
		for _, v := range part.Template.Variables {
			if _, given := part.Overrides[v.Name]; given || !v.Required || v.ExtractPath != "" {
				continue
			}
			path := m.at + "/config"
			switch v.Source {
			case prompt.FromVariable:
				if !l.variables[v.Name] {
					l.report(!l.unsure, path, RuleName, "the template %s requires the variable %s, which nothing declares or sets; declare it under variables, or set variableOverrides", part.Template.Ref(), v.Name)
				}
			case prompt.FromInput, "":
				if !l.ports[m.i][v.Name] {
					l.problem(path, RuleName, "the template %s requires the port %s, which nothing fills; lead an edge to it, or set it under inputs", part.Template.Ref(), v.Name)
				}
			case prompt.FromContext, prompt.FromSecret:
			}
		}
	}
}

// checkUnreadPorts warns about ports that the prompt does not use. The port input may only order nodes.
func (l *linter) checkUnreadPorts(m modelNode) {
	if m.cfg.Prompt == "" || len(m.templates) > 0 || isSet(m.t.Configure(m.n.Config), "promptId") {
		return
	}
	l.checkDropped(m)
	read := append(placeholders(m.cfg.Prompt), "messages", "media", "input")
	for _, port := range slices.Sorted(maps.Keys(l.ports[m.i])) {
		if !slices.Contains(read, port) {
			l.warn(l.portPath(m.i, port), RulePort, "the prompt does not use the port %s%s; add {{%s}} to the prompt", port, meant(port, read), port)
		}
	}
}

// checkDropped warns about a model's answer that leads to the port input of another model, which does not
// read it: a prompt without {{input}} drops it. Other nodes may only come first.
func (l *linter) checkDropped(m modelNode) {
	source, selected := l.sourceOf(m.i, "input")
	if source == "" || slices.Contains(placeholders(m.cfg.Prompt), "input") || selected[0] != "output" {
		return
	}
	k, known := l.at[source]
	t := l.Types[l.def.Nodes[max(k, 0)].TypeID]
	if known && t.AsksModel() && len(placeholders(m.cfg.Prompt)) == 0 && !l.usedElsewhere(source, m.i) {
		l.warn(m.path("prompt"), RulePort, "the prompt does not use the answer of %s, and no other node does; add {{input}} to the prompt", source)
	}
}

// usedElsewhere reports whether something other than the port input of a node reads a node's output: an
// edge, a port, or an expression.
func (l *linter) usedElsewhere(source string, i int) bool {
	for _, e := range l.def.Edges {
		if e.SourceNodeID == source && (e.TargetNodeID != l.def.Nodes[i].ID || e.Condition != nil || e.TargetInput != "input") {
			return true
		}
	}
	return l.reads(source)
}

// portPath returns the place that fills a port.
func (l *linter) portPath(i int, port string) string {
	if _, own := l.def.Nodes[i].Inputs[port]; own {
		return fmt.Sprintf("/nodes/%d/inputs/%s", i, jsonpointer.Escape(port))
	}
	for k, e := range l.def.Edges {
		if e.TargetNodeID == l.def.Nodes[i].ID && e.TargetInput == port {
			return fmt.Sprintf("/edges/%d/targetInput", k)
		}
	}
	return fmt.Sprintf("/nodes/%d", i)
}

// mockProvider is the provider of the protocol's tests, which their definitions name. sampleProvider needs
// no vendor, and has the models that the catalogue lists.
const (
	mockProvider   = "mock"
	sampleProvider = "sample"
)

func (l *linter) checkProvider(m modelNode) {
	others := m.cfg.OnError.Models
	reachable := slices.ContainsFunc(others, func(other string) bool {
		id, _, _ := strings.Cut(other, "/")
		return slices.Contains(l.Providers, id)
	})
	if id := m.cfg.Provider; id != "" && !l.hasProvider(id) {
		l.report(l.Providers != nil && id != mockProvider && !reachable && !l.TestSeams, m.path("provider"), RuleProvider, "%s", l.noProvider(id))
	}
	for k, other := range others {
		id, _, _ := strings.Cut(other, "/")
		if !l.hasProvider(id) {
			l.report(l.Providers != nil, fmt.Sprintf("%s/config/onError/models/%d", m.at, k), RuleProvider, "%s", l.noProvider(id))
		}
		if m.cfg.Model != "" && other == m.cfg.Provider+"/"+m.cfg.Model {
			l.warn(fmt.Sprintf("%s/config/onError/models/%d", m.at, k), RuleModel, "is the node's own model, which has failed already; name another one")
		}
	}
}

// hasProvider reports whether the host has a provider, or may have it.
func (l *linter) hasProvider(id string) bool {
	if l.Providers != nil {
		return slices.Contains(l.Providers, id)
	}
	_, listed := l.Models.Providers()[id]
	return listed || l.Models.Lists(id) || id == sampleProvider || id == mockProvider
}

func (l *linter) noProvider(id string) string {
	if l.Providers != nil {
		return "this host has no provider " + quote(id) + meant(id, l.Providers) + "; it has " + strings.Join(l.Providers, ", ") +
			"; set the vendor's key, or add a server with --provider"
	}
	known := append(slices.Sorted(maps.Keys(l.Models.Providers())), sampleProvider)
	if vendor := vendorOf[strings.ToLower(id)]; vendor != "" {
		return "no known vendor has the id " + quote(id) + "; did you mean " + vendor + "? it has these models"
	}
	return "no known vendor has the id " + quote(id) + meant(id, known) + "; a host needs --provider " + id + "=URL"
}

// vendorOf names the vendors of model families and products, which authors take for ids.
var vendorOf = map[string]string{"claude": "anthropic", "gpt": "openai", "chatgpt": "openai", "google": "gemini", "vertex": "gemini"}

func quote(text string) string { return fmt.Sprintf("%q", text) }

// findModel looks a model up, and reports one that its provider does not have.
func (l *linter) findModel(path, provider, model string) (e catalogue.Entry, known bool) {
	e, known = l.Models.Lookup(provider, model)
	if known || model == "" || provider == mockProvider || !l.Models.Lists(provider) {
		return e, known
	}
	if bare, prefixed := strings.CutPrefix(model, provider+"/"); prefixed {
		l.warn(path, RuleModel, "provider is %s already; drop the prefix: %s", provider, bare)
		return e, false
	}
	near := l.Models.Near(provider, model, 1)
	meant := ""
	if len(near) > 0 {
		meant = "; did you mean " + near[0] + "?"
	}
	switch {
	case provider == sampleProvider:
		l.report(!l.TestSeams, path, RuleModel, "the sample provider has no model %q%s", model, meant)
	case len(near) > 0:
		l.warn(path, RuleModel, "the catalogue has no such model%s `waybill model list` lists them", meant)
	default:
		l.warn(path, RuleModel, "the catalogue has no such model; `waybill model list` lists the known ones, --models adds others")
	}
	return e, false
}

// checkModel finds models that are unknown, and models that lack what the node needs.
func (l *linter) checkModel(m modelNode) {
	for k, other := range m.cfg.OnError.Models {
		provider, name, _ := strings.Cut(other, "/")
		l.findModel(fmt.Sprintf("%s/config/onError/models/%d", m.at, k), provider, name)
	}
	if m.cfg.Model != "" && m.cfg.Provider == "" {
		if id, name, ok := strings.Cut(m.cfg.Model, "/"); ok && l.Models.Lists(id) {
			l.warn(m.path("model"), RuleModel, "is called at the host's default provider; for the model of %s, set provider to %s and model to %s", id, id, name)
		}
	}
	if m.cfg.Model != "" && m.cfg.Provider == "" && !l.someProviderHas(m.cfg.Model) {
		l.warn(m.path("model"), RuleModel, "no provider of this host has the model; the host's default provider is called; set provider, too")
	}
	if family := familyOf(m.cfg.Model); family != "" && m.cfg.Provider == "" && l.Providers == nil {
		l.findModel(m.path("model"), family, m.cfg.Model)
	}
	if m.cfg.Model == "" || m.cfg.Provider == "" {
		return
	}
	e, known := l.findModel(m.path("model"), m.cfg.Provider, m.cfg.Model)
	if !known || m.cfg.Provider == mockProvider || m.cfg.Provider == sampleProvider {
		return
	}
	if needs := m.t.Needs; needs != nil && needs.Fallback == nil {
		for _, id := range needs.Required {
			if has, sure := l.Models.Has(modelgate.Model{Provider: e.Provider, Model: m.cfg.Model}, id); sure && !has {
				l.problem(m.path("model"), workflow.RuleCapability, "the node type requires %s, which the model does not have; name a model that has it", id)
			}
		}
	}
	if e.OutputTokens > 0 && m.cfg.MaxTokens > e.OutputTokens {
		l.warn(m.path("maxTokens"), node.RuleLimit, "is %d; the longest answer of the model has %d tokens", m.cfg.MaxTokens, e.OutputTokens)
	}
	if e.Sampling != nil && !*e.Sampling {
		for _, name := range []string{"temperature", "topP"} {
			if isSet(m.n.Config, name) {
				l.warn(m.path(name), RuleNoEffect, "the model does not take it, so it is not sent; remove it")
			}
		}
	}
}

// families are the vendors that alone name their models so. Other vendors serve gpt-oss.
var families = map[*regexp.Regexp]string{
	regexp.MustCompile(`^claude-`): "anthropic", regexp.MustCompile(`^gemini-`): "gemini", regexp.MustCompile(`^gpt-[0-9]`): "openai",
}

// familyOf returns the vendor of a model by its name alone; empty if there may be several.
func familyOf(model string) string {
	for form, vendor := range families {
		if form.MatchString(model) {
			return vendor
		}
	}
	return ""
}

// someProviderHas reports whether a provider of the host has a model, or may have it.
func (l *linter) someProviderHas(model string) bool {
	return l.Providers == nil || l.TestSeams || slices.ContainsFunc(l.Providers, func(id string) bool {
		_, known := l.Models.Lookup(id, model)
		return known || id == mockProvider || !l.Models.Lists(id)
	})
}

// checkTimeouts finds time limits that the host rejects when the node starts.
func (l *linter) checkTimeouts(m modelNode) {
	if l.MaxTimeout == nil || m.cfg.Provider == "" {
		return
	}
	most := l.MaxTimeout(m.cfg.Provider)
	if name, value := m.cfg.Timeouts.Check(most); name != "" {
		l.problem(m.path("timeouts")+"/"+name, node.RuleLimit, "is %d; want milliseconds from 1 to %d, the host's maximum for the provider (maxTimeoutMs in --provider-settings)", value, most.Milliseconds())
	}
}

// checkAnswer warns about settings of the answer that have no effect.
func (l *linter) checkAnswer(m modelNode) {
	takesEnvelopes := m.cfg.EnvelopeType != "" || m.cfg.Contract != nil || m.n.EnvelopeContract != nil || m.t.Made != nil && m.t.Made.Contract != nil
	for k, text := range m.cfg.Stop {
		if slices.Contains(m.cfg.Stop[:k], text) {
			l.warn(fmt.Sprintf("%s/%d", m.path("stop"), k), workflow.RuleUnique, "is there twice; remove one")
		}
		if text == `\n` || text == `\t` || text == `\n\n` {
			l.warn(fmt.Sprintf("%s/%d", m.path("stop"), k), node.RuleConfig, "is a backslash and a letter; write one backslash in JSON for a line break or a tab")
		}
		if text == "" {
			l.warn(fmt.Sprintf("%s/%d", m.path("stop"), k), node.RuleConfig, "an empty text, which vendors reject; remove it")
		}
	}
	if isSet(m.n.Config, "onError") && len(m.cfg.OnError.Models) == 0 {
		l.warn(m.path("onError"), RuleNoEffect, "names no other model, so the node fails with its own; add models, such as openai/gpt-5, or remove it")
	}
	if m.cfg.Partials && m.cfg.ExpectsStreaming != nil && !*m.cfg.ExpectsStreaming {
		l.problem(m.path("partials"), node.RuleConfig, "the answer is not streamed; set expectsStreaming to true, or remove partials")
	}
	if m.t.Executes() == node.TypeStructuredOutput && len(m.cfg.OutputSchema) == 0 {
		l.problem(m.at+"/config", node.RuleConfig, "the answer needs a JSON Schema; set outputSchema, or use %s for text", node.TypeCallPrompt)
	}
	if m.t.Executes() != node.TypeCallPrompt {
		return
	}
	if m.cfg.Turn == "payload" && m.cfg.EnvelopeType == "" {
		l.problem(m.path("turn"), node.RuleConfig, "a payload needs its kind; set envelopeType")
	} else if m.cfg.Turn != "" && !takesEnvelopes {
		l.warn(m.path("turn"), RuleNoEffect, "the node asks for text; set envelopeType or envelopeContract, or remove turn")
	}
	if m.cfg.Partials && !takesEnvelopes {
		l.problem(m.path("partials"), node.RuleConfig, "an answer in text has no parts; set envelopeType or envelopeContract, or remove partials")
	}
	if m.cfg.RepairJSON && !takesEnvelopes {
		l.warn(m.path("repairJson"), RuleNoEffect, "the node asks for text; set envelopeType or envelopeContract, or remove repairJson")
	}
}
