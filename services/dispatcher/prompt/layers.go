package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"waybill.dev/waybill/protocol/strictjson"
)

// The layers of the resolution of a reference (RFC 0029 §A). The first one with a reference wins.
const (
	layerNode        = "node"
	layerIntrinsic   = "agent-intrinsic"
	layerOverrides   = "agent-overrides"
	layerLibrary     = "agent-library-default"
	layerWorkflow    = "workflow-defaults"
	layerHost        = "host-defaults"
	reasonNone       = "no reference at this layer"
	reasonNotAgents  = "this host binds no agents to prompts"
	reasonNoAgent    = "the node names no agent"
	reasonOtherAgent = "the node's agent is not known"
	reasonNotOfKind  = "an agent has an intrinsic prompt of kind system only"
	reasonNoLibrary  = "this host has no defaults of libraries"
)

// Layers are the references of all layers for one place of a node's prompt.
type Layers struct {
	NodeID string
	Kind   Kind
	// AgentID is the node's agent; empty if it names none.
	AgentID string
	found   []Candidate
}

// Candidate is the reference of one layer, in its short form.
type Candidate struct {
	Layer string `json:"layer"`
	// Source is empty if the layer has no reference.
	Source  string `json:"source,omitempty"`
	Applied bool   `json:"applied"`
	Reason  string `json:"reason,omitempty"`
}

// Resolution is the payload of agent.promptResolved, with the layer that won.
type Resolution struct {
	NodeID     string      `json:"nodeId"`
	Kind       Kind        `json:"kind"`
	AgentID    string      `json:"agentId,omitempty"`
	Chain      []Candidate `json:"chain"`
	Resolved   *string     `json:"resolved"`
	ResolvedAt *string     `json:"resolvedAt"`
}

// Resolve returns the reference of the first layer that has one, and every layer that was tried.
func (l Layers) Resolve() Resolution {
	r := Resolution{NodeID: l.NodeID, Kind: l.Kind, AgentID: l.AgentID}
	for _, c := range l.found {
		switch {
		case c.Source == "":
		case r.Resolved == nil:
			c.Applied = true
			r.Resolved, r.ResolvedAt = &c.Source, &c.Layer
		default:
			c.Reason = "superseded by the layer " + *r.ResolvedAt
		}
		r.Chain = append(r.Chain, c)
	}
	return r
}

// Event is the payload of agent.promptResolved, which has no member for the layer.
func (r Resolution) Event() json.RawMessage {
	return encode(struct {
		Resolution

		ResolvedAt *string `json:"resolvedAt,omitempty"`
	}{Resolution: r})
}

// layersDoc is the document that ParseLayers reads.
type layersDoc struct {
	Kind             Kind                       `json:"kind"`
	Node             *layersNode                `json:"node"`
	AgentManifest    map[string]json.RawMessage `json:"agentManifest"`
	WorkflowDefaults struct {
		PromptRefs map[string]json.RawMessage `json:"promptRefs"`
	} `json:"workflowDefaults"`
	HostDefaults map[string]json.RawMessage `json:"hostDefaults"`
	// AgentBindings replaces the host's capability.
	AgentBindings bool `json:"agentBindingsSupported"`
}

type layersNode struct {
	NodeID string                     `json:"nodeId"`
	Config map[string]json.RawMessage `json:"config"`
}

// maxLayersBytes limits the document.
const maxLayersBytes = 256 << 10

// ParseLayers reads the references of all layers: a node's config, an agent's manifest, and the
// defaults of a workflow and of a host.
func ParseLayers(doc []byte) (Layers, []Problem) {
	var d layersDoc
	if err := strictjson.Decode(doc, strictjson.Limits{MaxBytes: maxLayersBytes, MaxDepth: maxDepth}, &d); err != nil {
		if e, ok := errors.AsType[*strictjson.Error](err); ok {
			return Layers{}, []Problem{invalid(e.Path, "%s", e.Reason)}
		}
		return Layers{}, []Problem{invalid("", "not valid JSON")}
	}
	switch {
	case !slices.Contains(Kinds(), d.Kind):
		return Layers{}, []Problem{invalid("/kind", "want one of system, user, few-shot, schema-hint")}
	case d.Node == nil || d.Node.NodeID == "":
		return Layers{}, []Problem{invalid("/node/nodeId", "required")}
	}
	p := &layersParser{doc: d, out: Layers{NodeID: d.Node.NodeID, Kind: d.Kind}}
	p.readAll()
	if p.wrong != nil {
		return Layers{}, p.wrong
	}
	return p.out, nil
}

// layersParser collects the candidates in the order of the layers.
type layersParser struct {
	doc   layersDoc
	out   Layers
	wrong []Problem
}

// readAll collects the candidates of all layers.
func (p *layersParser) readAll() {
	p.readNode()
	p.readAgent()
	kind := string(p.doc.Kind)
	p.take(layerWorkflow, "/workflowDefaults/promptRefs/"+kind, p.doc.WorkflowDefaults.PromptRefs[kind])
	p.take(layerHost, "/hostDefaults/"+kind, p.doc.HostDefaults[kind])
}

func (p *layersParser) add(layer, source, reason string) {
	if source != "" {
		reason = ""
	}
	p.out.found = append(p.out.found, Candidate{Layer: layer, Source: source, Reason: reason})
}

// take adds the reference of a layer.
func (p *layersParser) take(layer, path string, raw json.RawMessage) {
	if isMissing(raw) {
		p.add(layer, "", reasonNone)
		return
	}
	ref, wrong := ParseRef(raw)
	for _, w := range wrong {
		p.wrong = append(p.wrong, invalid(path+w.Path, "%s", w.Message))
	}
	p.add(layer, ref.String(), "")
}

// nodeMembers are the members of a node's config by the kind of their templates.
var nodeMembers = map[Kind]string{System: "systemPromptRef", User: "userPromptRef", SchemaHint: "schemaHintPromptRef"}

func (p *layersParser) readNode() {
	config := p.doc.Node.Config
	if p.doc.Kind != FewShot {
		name := nodeMembers[p.doc.Kind]
		p.take(layerNode, "/node/config/"+name, config[name])
		return
	}
	const path = "/node/config/" + fewShotMember
	var list []json.RawMessage
	if raw := config[fewShotMember]; !isMissing(raw) && json.Unmarshal(raw, &list) != nil {
		p.wrong = append(p.wrong, invalid(path, "want an array of references"))
	}
	at := slices.IndexFunc(list, func(raw json.RawMessage) bool { return !isMissing(raw) })
	if at < 0 {
		p.add(layerNode, "", reasonNone)
		return
	}
	p.take(layerNode, path+"/"+strconv.Itoa(at), list[at])
}

// readAgent adds the layers of the node's agent. They are tried only if the host binds agents.
func (p *layersParser) readAgent() {
	raw := p.doc.Node.Config[agentMember]
	id, isText := strictjson.String(raw)
	if !isMissing(raw) && (!isText || id == "") {
		p.wrong = append(p.wrong, invalid("/node/config/agentId", "want a string of at least one character"))
	}
	p.out.AgentID = id
	own, _ := strictjson.String(p.doc.AgentManifest["agentId"])
	switch {
	case id == "":
		p.add(layerIntrinsic, "", reasonNoAgent)
	case !p.doc.AgentBindings:
		p.add(layerIntrinsic, "", reasonNotAgents)
	case p.doc.AgentManifest == nil || own != id:
		p.add(layerIntrinsic, "", reasonOtherAgent)
	default:
		p.readManifest(id)
	}
}

func (p *layersParser) readManifest(id string) {
	m := p.doc.AgentManifest
	text, _ := strictjson.String(m["systemPrompt"])
	file, _ := strictjson.String(m["systemPromptRef"])
	switch {
	case p.doc.Kind != System:
		p.add(layerIntrinsic, "", reasonNotOfKind)
	case file != "":
		p.add(layerIntrinsic, file, "")
	case text != "":
		p.add(layerIntrinsic, fmt.Sprintf("agent:%s/systemPrompt", id), "")
	default:
		p.add(layerIntrinsic, "", reasonNone)
	}
	p.take(layerOverrides, "/agentManifest/promptOverrides/"+string(p.doc.Kind), strictjson.Object(m["promptOverrides"])[string(p.doc.Kind)])
	p.add(layerLibrary, "", reasonNoLibrary)
}
