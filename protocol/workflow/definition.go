package workflow

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"waybill.dev/waybill/protocol/channel"
	"waybill.dev/waybill/protocol/schema"
)

// Definition is a valid workflow, as returned by Parse. It is immutable: one value serves all runs.
// JSON written by the author is kept byte for byte.
type Definition struct {
	// Raw is the document, byte for byte as it was given.
	Raw []byte `json:"-"`

	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version"`
	Type        string `json:"type"`
	// IsActive is nil if the document does not set it.
	IsActive *bool  `json:"isActive"`
	Status   string `json:"status"`
	TenantID string `json:"tenantId"`
	ScopeID  string `json:"scopeId"`
	Slug     string `json:"slug"`

	Nodes     []Node     `json:"nodes"`
	Edges     []Edge     `json:"edges"`
	Triggers  []Trigger  `json:"triggers"`
	Variables []Variable `json:"variables"`
	// Channels by name; nil if the workflow declares none.
	Channels map[string]Channel `json:"channels"`
	// ConfigurableSchema is the author's JSON Schema for configurable; nil if none. CheckConfigurable
	// applies it.
	ConfigurableSchema json.RawMessage `json:"configurableSchema"`
	Defaults           Defaults        `json:"defaults"`
	Metadata           Metadata        `json:"metadata"`
	Settings           Settings        `json:"settings"`

	configurable *schema.Schema
	channels     map[string]*channel.Channel
}

// Digest identifies the document by content: "sha256:" and the hex digest of Raw.
func (d *Definition) Digest() string {
	sum := sha256.Sum256(d.Raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// setDefaults fills in absent members, so that readers need not handle absence.
func (d *Definition) setDefaults() {
	d.Settings.MaxLoopbackIterations = cmp.Or(d.Settings.MaxLoopbackIterations, defaultLoopbacks)
	d.Metadata.ComplianceClass = cmp.Or(d.Metadata.ComplianceClass, publicClass)
	for i := range d.Nodes {
		n := &d.Nodes[i]
		n.Name = cmp.Or(n.Name, n.ID)
		if n.Config == nil {
			n.Config = json.RawMessage(`{}`)
		}
	}
	for i := range d.Edges {
		e := &d.Edges[i]
		e.SourceOutput = cmp.Or(e.SourceOutput, "output")
		e.TargetInput = cmp.Or(e.TargetInput, "input")
		e.TriggerRule = cmp.Or(e.TriggerRule, AllSuccess)
		if c := e.Condition; c != nil && c.Type == ConditionAlways && c.Expression != "" {
			c.Type = ConditionExpression
		}
	}
}

// Defaults are the author's defaults for all nodes.
type Defaults struct {
	// PromptRefs by prompt kind: a string or an object (RFC 0029 §B).
	PromptRefs map[string]json.RawMessage `json:"promptRefs"`
}

// Trigger defines what may start the workflow. POST /v1/runs needs none.
type Trigger struct {
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Config      json.RawMessage `json:"config"`
	// Enabled is nil if the document does not set it, which means true.
	Enabled   *bool  `json:"enabled"`
	NodeID    string `json:"nodeId"`
	EventType string `json:"eventType"`
}

// IsEnabled reports whether the trigger may start the workflow.
func (t *Trigger) IsEnabled() bool { return t.Enabled == nil || *t.Enabled }

// Variable is an entry of the variable bag that runs of the workflow share.
type Variable struct {
	Name string `json:"name"`
	// Type is string, number, boolean, object or array.
	Type        string `json:"type"`
	Description string `json:"description"`
	// Required: a run needs a value, from DefaultValue or its inputs.
	Required bool `json:"required"`
	// DefaultValue is nil if there is none.
	DefaultValue json.RawMessage `json:"defaultValue"`
	// Sensitive values are masked wherever they leave the run.
	Sensitive bool `json:"sensitive"`
}
