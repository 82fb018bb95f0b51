package interrupt

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
)

// defaultThreshold is below what a confidence is too low, unless the question says
// (OpenWOP host contract §6.1, low-confidence).
const defaultThreshold = 0.7

// confidenceData is the data of a question that is asked of a decision somebody is not sure
// of.
type confidenceData struct {
	AgentID   string   `json:"agentId"`
	Threshold *float64 `json:"threshold"`
	// Observed is nil where the port of that name tells it.
	Observed *float64        `json:"observed,omitempty"`
	Decision json.RawMessage `json:"decision,omitempty"`
}

// confidence is the data of a request that is one of confidence.
func (r Request) confidence() (d confidenceData, ok bool) {
	return d, r.Kind == LowConfidence && strictjson.Read(r.Data, &d) == nil
}

func readConfidence(_ Place, below string, doc json.RawMessage, _ int64) (json.RawMessage, []workflow.Problem) {
	if wrong := misfits(string(LowConfidence), below, doc); len(wrong) > 0 {
		return nil, wrong
	}
	var d confidenceData
	if err := strictjson.Read(doc, &d); err != nil {
		return nil, []workflow.Problem{{Path: below, Rule: workflow.RuleJSON, Message: err.Error()}}
	}
	if d.Threshold == nil {
		threshold := defaultThreshold
		d.Threshold = &threshold
	}
	return strictjson.RenderPlain(d), nil
}

// WithObserved gives a question of confidence the one that was observed, where it has none
// of its own. Other requests stay as they are.
func (r Request) WithObserved(observed json.RawMessage) Request {
	d, ok := r.confidence()
	var f float64
	if !ok || d.Observed != nil || json.Unmarshal(observed, &f) != nil || string(observed) == "null" {
		return r
	}
	d.Observed = &f
	r.Data = strictjson.RenderPlain(d)
	return r
}

// Confident reports whether nobody has to be asked: the confidence is not below its
// threshold. The ports are what the node completes with then.
func (r Request) Confident() (ports map[string]json.RawMessage, ok bool) {
	d, ok := r.confidence()
	if !ok || d.Observed == nil || *d.Observed < *d.Threshold {
		return nil, false
	}
	ports = map[string]json.RawMessage{"observed": strictjson.RenderPlain(d.Observed), "threshold": strictjson.RenderPlain(d.Threshold)}
	if d.Decision != nil {
		ports["decision"] = d.Decision
	}
	return ports, true
}

// unobserved finds what is no confidence.
func (d *confidenceData) unobserved() []workflow.Problem {
	if d.Observed != nil && *d.Observed >= 0 && *d.Observed <= 1 {
		return nil
	}
	return []workflow.Problem{{Path: "/data/observed", Rule: workflow.RuleRequired, Message: "want a number from 0 to 1, here or in the port observed"}}
}
