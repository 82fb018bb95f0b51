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

// What becomes of a node whose child does not complete.
const (
	FailParent = "fail-parent"
	Absorb     = "absorb"
)

// SubWorkflow is the config of a node that runs another workflow (OpenWOP host contract §5.6).
type SubWorkflow struct {
	WorkflowID string
	// Wait says that the node ends when its child has.
	Wait bool
	// Absorb completes the node also when the child does not.
	Absorb bool
	// Inputs maps a variable of the child to the one of the parent that it is given,
	// Outputs a variable of the parent to the one of the child that it takes.
	Inputs, Outputs map[string]string
	// Cascade says that the child is cancelled with its parent.
	Cascade bool
}

// ParseSubWorkflow reads a node's config; what is wrong names its place below the config.
func ParseSubWorkflow(config json.RawMessage) (SubWorkflow, *wire.NodeError) {
	raw := struct {
		WorkflowID    string            `json:"workflowId"`
		Wait          *bool             `json:"waitForCompletion"`
		OnFailure     string            `json:"onChildFailure"`
		InputMapping  map[string]string `json:"inputMapping"`
		OutputMapping map[string]string `json:"outputMapping"`
		Propagate     *bool             `json:"propagateCancellation"`
	}{OnFailure: FailParent}
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

// misread says which member of the config has the wrong type.
func misread(err error) *wire.NodeError {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return Invalid("/config/%s: want %s, got %s", strings.ReplaceAll(wrong.Field, ".", "/"), kinds[wrong.Type.Kind()], wrong.Value)
	}
	return Invalid("/config: want an object with a workflowId")
}

// kinds are the types that members of the config have.
var kinds = map[reflect.Kind]string{reflect.String: "a string", reflect.Bool: "true or false", reflect.Map: "an object that maps names to names"}

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
