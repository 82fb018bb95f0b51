package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Flow is a generated workflow.
type Flow struct {
	Nodes     []Node
	TimeoutMs int `json:",omitempty"`
	// Limit is the concurrency limit of the workflow's runs; 0 means no limit.
	Limit int `json:",omitempty"`
}

// Node is a node of a generated workflow. Edges only come from earlier nodes.
type Node struct {
	Kind    nodeKind
	From    []int                `json:",omitempty"`
	Rule    workflow.TriggerRule `json:",omitempty"`
	DelayMs int                  `json:",omitempty"` // duration of a delay, timeout of a gate
	Script  *Script              `json:",omitempty"`
}

// nodeKind is what a node does.
type nodeKind string

// The node kinds.
const (
	kindNoop     nodeKind = "noop"
	kindIdentity nodeKind = "identity"
	kindDelay    nodeKind = "delay"
	kindFail     nodeKind = "fail"
	kindPrompt   nodeKind = "prompt"   // a text, streamed
	kindValue    nodeKind = "value"    // a document of a schema
	kindEnvelope nodeKind = "envelope" // a document that the acceptor records
	kindGate     nodeKind = "gate"     // waits for an external decision
)

// types maps a kind to its node type.
var types = map[nodeKind]string{
	kindNoop: "core.noop", kindIdentity: "core.identity", kindDelay: "core.delay", kindFail: "core.fail",
	kindGate: "core.approvalGate", kindPrompt: node.TypeCallPrompt, kindValue: node.TypeStructuredOutput, kindEnvelope: node.TypeCallPrompt,
}

func (k nodeKind) asksModel() bool { return k == kindPrompt || k == kindValue || k == kindEnvelope }

// kinds is the list to draw from; repeated kinds are more frequent.
var kinds = []nodeKind{
	kindNoop, kindIdentity, kindIdentity, kindDelay, kindDelay, kindFail,
	kindPrompt, kindPrompt, kindValue, kindEnvelope, kindEnvelope, kindGate,
}

var rulesOf = []workflow.TriggerRule{
	workflow.AllSuccess, workflow.AllSuccess, workflow.AnySuccess, workflow.AllComplete, workflow.NoneFailed, workflow.AnyFailed,
}

const maxRetries = 6

func newFlow(r *rand.Rand) Flow {
	f := Flow{Nodes: make([]Node, 1+r.IntN(6))}
	for i := range f.Nodes {
		n := Node{Kind: kinds[r.IntN(len(kinds))]}
		for j := range i {
			if r.IntN(3) == 0 {
				n.From = append(n.From, j)
			}
		}
		if len(n.From) > 0 {
			n.Rule = rulesOf[r.IntN(len(rulesOf))]
		}
		if n.Kind == kindDelay {
			n.DelayMs = []int{0, 1, 40, 900, 3_000, 25_000}[r.IntN(6)]
		}
		if n.Kind == kindGate {
			n.DelayMs = []int{2_000, 9_000, 30_000}[r.IntN(3)]
		}
		if n.Kind.asksModel() {
			n.Script = newScript(r, n.Kind)
		}
		f.Nodes[i] = n
	}
	if r.IntN(6) == 0 {
		f.TimeoutMs = 500 + r.IntN(20_000)
	}
	return f
}

func nodeID(i int) string { return fmt.Sprintf("n%d", i) }

// port is the node's output port that other nodes read, empty if it has none.
func (n Node) port(i int) string {
	switch {
	case n.Kind == kindIdentity:
		return fmt.Sprintf("v%d", i)
	case n.Kind.asksModel():
		return "output"
	}
	return ""
}

func input(from, to int) string { return fmt.Sprintf("e%d_%d", from, to) }

type object = map[string]any

// document is the workflow's definition.
func (f Flow) document(id string) []byte {
	nodes, edges := []object{}, []object{}
	for i, n := range f.Nodes {
		inputs := object{}
		if n.Kind == kindIdentity {
			inputs[n.port(i)] = object{"type": "static", "value": fmt.Sprintf("value of %s of %s", nodeID(i), id)}
		}
		nodes = append(nodes, object{
			"id": nodeID(i), "typeId": types[n.Kind], "name": nodeID(i), "position": object{"x": 0, "y": 0},
			"config": n.config(), "inputs": inputs,
		})
		for _, from := range n.From {
			e := object{
				"id": input(from, i), "sourceNodeId": nodeID(from), "targetNodeId": nodeID(i),
				"targetInput": input(from, i), "triggerRule": n.Rule,
			}
			if p := f.Nodes[from].port(from); p != "" {
				e["sourceOutput"] = p
			}
			edges = append(edges, e)
		}
	}
	settings := object{"maxRetries": maxRetries}
	if f.TimeoutMs > 0 {
		settings["timeout"] = f.TimeoutMs
	}
	if f.Limit > 0 {
		settings["concurrency"] = object{"limit": f.Limit}
	}
	b, err := json.Marshal(object{
		"id": id, "name": id, "version": "1", "nodes": nodes, "edges": edges,
		"triggers": []any{}, "variables": []any{}, "metadata": object{}, "settings": settings,
	})
	if err != nil {
		panic("sim: workflow is not JSON: " + err.Error())
	}
	return b
}

func (n Node) config() object {
	switch n.Kind {
	case kindDelay:
		return object{"ms": n.DelayMs}
	case kindGate:
		return object{"title": "may it continue?", "actions": []string{"accept", "reject"}, "timeoutMs": n.DelayMs, "escalation": n.levels()}
	case kindFail:
		return object{"code": "sim_failure", "message": "this node always fails"}
	case kindPrompt:
		return object{"prompt": "say something"}
	case kindValue:
		return object{"prompt": "a number, please", "outputSchema": json.RawMessage(valueSchema)}
	case kindEnvelope:
		return object{"prompt": "a note, please", "envelopeType": noteKind, "expectsStreaming": n.Script.Pieces%2 == 0}
	default:
		return object{}
	}
}

// levels is the number of escalation levels of a gate. They divide its timeout into thirds.
const levels = 2

func (n Node) levels() []object {
	out := make([]object, levels)
	for i := range out {
		out[i] = object{"afterSec": n.level(i + 1).Seconds()}
	}
	return out
}

// level is the delay of a gate's escalation level, counted from 1.
func (n Node) level(i int) time.Duration {
	return time.Duration(n.DelayMs) * time.Millisecond * time.Duration(i) / (levels + 1)
}

const valueSchema = `{"type":"object","required":["n"],"additionalProperties":false,"properties":{"n":{"type":"integer"}}}`
