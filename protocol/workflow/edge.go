package workflow

import "encoding/json"

// TriggerRule says when a node with incoming edges may start.
type TriggerRule string

// The trigger rules (OpenWOP host contract §5.2).
const (
	AllSuccess  TriggerRule = "all_success"
	AnySuccess  TriggerRule = "any_success"
	AllComplete TriggerRule = "all_complete"
	NoneFailed  TriggerRule = "none_failed"
	AnyFailed   TriggerRule = "any_failed"
)

// Edge leads from an output port of one node to an input port of another.
type Edge struct {
	ID           string `json:"id"`
	SourceNodeID string `json:"sourceNodeId"`
	// SourceOutput is "output" unless the document says otherwise.
	SourceOutput string `json:"sourceOutput"`
	TargetNodeID string `json:"targetNodeId"`
	// TargetInput is "input" unless the document says otherwise.
	TargetInput string `json:"targetInput"`
	// Condition is nil for an edge that always carries.
	Condition *EdgeCondition `json:"condition"`
	Label     string         `json:"label"`
	// TriggerRule is AllSuccess unless the document says otherwise.
	TriggerRule TriggerRule `json:"triggerRule"`
}

// ConditionType says how an edge decides whether it carries.
type ConditionType string

// The types of EdgeCondition.
const (
	// ConditionAlways is the empty condition: the edge carries.
	ConditionAlways     ConditionType = ""
	ConditionExpression ConditionType = "expression"
	ConditionEquals     ConditionType = "equals"
	ConditionNotEquals  ConditionType = "notEquals"
	ConditionContains   ConditionType = "contains"
	ConditionRegex      ConditionType = "regex"
)

// EdgeCondition decides whether an edge carries. Parse has made sure that the
// fields its type needs are there, and no others; a bare expression has been given
// its type.
type EdgeCondition struct {
	Type ConditionType `json:"type"`
	// Left is a dot path into the outputs of the source node.
	Left string `json:"left"`
	// Right is what Left is compared with; a pattern in RE2 syntax for regex.
	Right json.RawMessage `json:"right"`
	// Expression is a boolean expression over outputs and variables.
	Expression string `json:"expression"`
}
