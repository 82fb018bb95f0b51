package workflow

import "encoding/json"

// TriggerRule determines when a node with incoming edges may start.
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
	// SourceOutput defaults to "output".
	SourceOutput string `json:"sourceOutput"`
	TargetNodeID string `json:"targetNodeId"`
	// TargetInput defaults to "input".
	TargetInput string `json:"targetInput"`
	// Condition is nil for an unconditional edge.
	Condition *EdgeCondition `json:"condition"`
	Label     string         `json:"label"`
	// TriggerRule defaults to AllSuccess.
	TriggerRule TriggerRule `json:"triggerRule"`
}

// ConditionType is the kind of an edge's condition.
type ConditionType string

// The types of EdgeCondition.
const (
	// ConditionAlways is the empty condition: always true.
	ConditionAlways     ConditionType = ""
	ConditionExpression ConditionType = "expression"
	ConditionEquals     ConditionType = "equals"
	ConditionNotEquals  ConditionType = "notEquals"
	ConditionContains   ConditionType = "contains"
	ConditionRegex      ConditionType = "regex"
)

// EdgeCondition decides whether an edge is taken. Parse ensures that exactly the fields of its type
// are set, and sets the type of a bare expression.
type EdgeCondition struct {
	Type ConditionType `json:"type"`
	// Left is a dot path into the outputs of the source node.
	Left string `json:"left"`
	// Right is the value to compare Left with; for regex, a pattern in RE2 syntax.
	Right json.RawMessage `json:"right"`
	// Expression is a boolean expression over outputs and variables.
	Expression string `json:"expression"`
}
