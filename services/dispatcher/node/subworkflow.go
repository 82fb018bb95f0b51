package node

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// TypeSubWorkflow is the node type that runs another workflow.
const TypeSubWorkflow = "core.subWorkflow"

// Policies for a child that does not complete.
const (
	FailParent = "fail-parent"
	Absorb     = "absorb"
)

// SubWorkflow is the config of a node that runs another workflow (OpenWOP host contract §5.6).
type SubWorkflow struct {
	WorkflowID string
	// Wait means that the node ends after its child.
	Wait bool
	// Absorb completes the node even if the child does not complete.
	Absorb bool
	// Inputs maps variables of the child to variables of the parent, Outputs variables of the
	// parent to variables of the child.
	Inputs, Outputs map[string]string
	// Cascade means that the child is cancelled with its parent.
	Cascade bool
}

// subWorkflowConfig is the config as it is written.
type subWorkflowConfig struct {
	WorkflowID    string            `json:"workflowId"`
	Wait          *bool             `json:"waitForCompletion"`
	OnFailure     string            `json:"onChildFailure"`
	InputMapping  map[string]string `json:"inputMapping"`
	OutputMapping map[string]string `json:"outputMapping"`
	Propagate     *bool             `json:"propagateCancellation"`
}

// ParseSubWorkflow parses a node's config. Errors name the path within the config.
func ParseSubWorkflow(config json.RawMessage) (SubWorkflow, *wire.NodeError) {
	raw := subWorkflowConfig{OnFailure: FailParent}
	if len(config) > 0 {
		if err := strictjson.Read(config, &raw); err != nil {
			return SubWorkflow{}, misread(err)
		}
	}
	switch {
	case raw.WorkflowID == "":
		return SubWorkflow{}, Invalid("/config/workflowId: want the id of the workflow to run")
	case raw.OnFailure != FailParent && raw.OnFailure != Absorb:
		return SubWorkflow{}, Invalid("/config/onChildFailure: want %s or %s", FailParent, Absorb)
	}
	if unnamed(raw.InputMapping) {
		return SubWorkflow{}, Invalid("/config/inputMapping: want the name of a variable of the child for each, and one of this workflow as its value")
	}
	if unnamed(raw.OutputMapping) {
		return SubWorkflow{}, Invalid("/config/outputMapping: want the name of a variable of this workflow for each, and one of the child as its value")
	}
	return SubWorkflow{
		WorkflowID: raw.WorkflowID, Wait: raw.Wait == nil || *raw.Wait, Absorb: raw.OnFailure == Absorb,
		Inputs: raw.InputMapping, Outputs: raw.OutputMapping, Cascade: raw.Propagate == nil || *raw.Propagate,
	}, nil
}

// misread reports the member of the config with the wrong type.
func misread(err error) *wire.NodeError {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return Invalid("/config/%s: want %s, got %s", strings.ReplaceAll(wrong.Field, ".", "/"), kinds[wrong.Type.Kind()], wrong.Value)
	}
	return Invalid("/config: want an object with a workflowId")
}

// kinds are the types that members of the config have.
var kinds = map[reflect.Kind]string{
	reflect.String: "a string",
	reflect.Bool:   "true or false",
	reflect.Map:    "an object that maps names to names",
}

// unnamed reports whether a mapping has an empty name.
func unnamed(mapping map[string]string) bool {
	for to, from := range mapping {
		if to == "" || from == "" {
			return true
		}
	}
	return false
}

func checkSubWorkflow(config json.RawMessage) *wire.NodeError {
	_, bad := ParseSubWorkflow(config)
	return bad
}
