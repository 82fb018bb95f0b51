package interrupt

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
)

// defaultThreshold applies if the question sets no threshold (OpenWOP host contract §6.1,
// low-confidence).
const defaultThreshold = 0.7

// confidenceData is the data of a low-confidence question.
type confidenceData struct {
	AgentID   string   `json:"agentId"`
	Threshold *float64 `json:"threshold"`
	// Observed is nil if the port of that name provides it.
	Observed *float64        `json:"observed,omitempty"`
	Decision json.RawMessage `json:"decision,omitempty"`
}

// confidence returns the data of a low-confidence request.
func (r Request) confidence() (d confidenceData, ok bool) {
	return d, r.Kind == LowConfidence && strictjson.Read(r.Data, &d) == nil
}

func readConfidence(_ Origin, below string, doc json.RawMessage, _ int64) (json.RawMessage, []workflow.Problem) {
	if wrong := checkShape(string(LowConfidence), below, doc); len(wrong) > 0 {
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

// WithObserved sets the observed confidence of a low-confidence question that has none. Other
// requests are unchanged.
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

// Confident reports whether the confidence reaches its threshold, so that no answer is required.
// The node then completes with the returned ports.
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

// checkObserved rejects a missing or invalid confidence.
func (d *confidenceData) checkObserved() []workflow.Problem {
	if d.Observed != nil && *d.Observed >= 0 && *d.Observed <= 1 {
		return nil
	}
	return []workflow.Problem{{Path: "/data/observed", Rule: workflow.RuleRequired, Message: "want a number from 0 to 1, here or in the port observed"}}
}
