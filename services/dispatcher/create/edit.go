package create

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Edit is a change of one node of the source. The members are JSON objects, or empty.
type Edit struct {
	NodeID string
	// Config has the members of the node's config that change; null removes one.
	Config json.RawMessage
	// Inputs are values of ports, by port.
	Inputs json.RawMessage
	// Outputs complete the node instead of its execution.
	Outputs json.RawMessage
	// Only makes a run of this node alone.
	Only bool
	// Node returns the node as the source recorded it.
	Node func(ctx context.Context) (*NodeStart, error)
	// Lint returns the problems of a document that is not registered, with their paths. Problems of the
	// base outside the node do not count.
	Lint func(ctx context.Context, base, doc []byte) ([]workflow.Problem, error)
}

// NodeStart is a node of a run, and what it was given when its last attempt started.
type NodeStart struct {
	TypeID string
	// First is the sequence of the node's first event.
	First  int
	Config json.RawMessage
	// Inputs are the values of its ports, Variables those of the variables that it sees.
	Inputs, Variables                   map[string]json.RawMessage
	UntrustedInputs, UntrustedVariables []string
	// Untrusted means that it had untrusted inputs or outputs.
	Untrusted bool
	// Failed is why the inputs could not be computed; nil if they were.
	Failed *wire.NodeError
}

// startEdit reads the node to edit, and sets where the fork begins: before the node, or at the start of a run
// of this node alone.
func (s *Starter) startEdit(ctx context.Context, req *Fork) (*NodeStart, error) {
	start, err := req.Edit.Node(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.checkEdit(req.Edit, start); err != nil {
		return nil, err
	}
	req.FromSeq = start.First
	if req.Edit.Only {
		req.FromSeq = 0
	}
	return start, nil
}

// checkEdit rejects what cannot be edited. An answer of a person is given by that person only.
func (s *Starter) checkEdit(e *Edit, start *NodeStart) error {
	t := node.CurrentOf(s.deps.Types)[start.TypeID]
	changes := len(e.Config) > 0 || len(e.Inputs) > 0
	switch {
	case len(e.Outputs) > 0 && (changes || e.Only):
		return fault.InvalidBody("/outputs", "want outputs, which replace the execution of the node, or changes of it, not both")
	case len(e.Outputs) == 0 && !changes && !e.Only:
		return fault.InvalidBody("/config", "want config, inputs or outputs of the node, or only: true")
	case len(e.Outputs) > 0 && t.Class == node.Asks:
		return fault.InvalidBody("/outputs", "node %q asks a person, and its outputs are their answer; fork the run before it and answer the question", e.NodeID)
	case len(e.Outputs) > 0 && !edits(t):
		return fault.InvalidBody("/outputs", "node %q sets a variable or a channel, which its outputs do not; edit a node before it", e.NodeID)
	case len(e.Outputs) == 0 && !t.AsksModel():
		return fault.InvalidBody("/config", "node %q calls no model: only its outputs can be edited", e.NodeID)
	case e.Only && start.Failed != nil:
		return fault.New(fault.Conflict, "node %q had no valid inputs (%s): nothing can be tried with them", e.NodeID, start.Failed.Message)
	}
	return nil
}

// edits reports whether the outputs of a node's type can be edited.
func edits(t node.Type) bool {
	_, ok := t.Edited(nil)
	return ok
}

// applyEdit adds an edit to the record of a branch, and returns the definition that the branch executes.
// The record has the edits of the source already.
func (s *Starter) applyEdit(ctx context.Context, rec *wire.RunRecord, e *Edit, start *NodeStart) (*definition.Entry, error) {
	edited := &wire.Edited{Definition: rec.WorkflowDigest}
	if before := rec.Fork.Edited; before != nil {
		edited = &wire.Edited{
			Definition: before.Definition, Nodes: slices.Clone(before.Nodes), Only: before.Only, UntrustedVariables: before.UntrustedVariables,
		}
	}
	own, err := e.of(start, rec.Edit(e.NodeID))
	if err != nil {
		return nil, err
	}
	if e.Only {
		edited.Nodes, edited.Only = nil, e.NodeID
		edited.UntrustedVariables = start.UntrustedVariables
		rec.Inputs, rec.Defaults, rec.Channels = start.Variables, nil, nil
		rec.CallbackURL, rec.ScopeID = "", ""
	}
	edited.Nodes = append(slices.DeleteFunc(edited.Nodes, func(n wire.NodeEdit) bool { return n.NodeID == e.NodeID }), own)
	rec.Fork.Edited = edited
	return s.editedEntry(ctx, rec, e, start)
}

// of returns the edit in the form of the record. before is the edit of the node in the source, which stays
// where this one changes nothing; nil if there is none.
func (e *Edit) of(start *NodeStart, before *wire.NodeEdit) (wire.NodeEdit, error) {
	if before == nil {
		before = &wire.NodeEdit{}
	}
	out := wire.NodeEdit{NodeID: e.NodeID, Config: before.Config, Inputs: map[string]json.RawMessage{}, Untrusted: start.Untrusted}
	var err error
	if len(e.Config) > 0 {
		if out.Config, err = patch(start.Config, e.Config); err != nil {
			return out, fault.InvalidBody("/config", "want a JSON object")
		}
	}
	if out.Outputs, err = members(e.Outputs); err != nil {
		return out, fault.InvalidBody("/outputs", "want a JSON object: the value of each output port")
	}
	inputs, err := members(e.Inputs)
	if err != nil {
		return out, fault.InvalidBody("/inputs", "want a JSON object: the value of each input port")
	}
	maps.Copy(out.Inputs, before.Inputs)
	if e.Only {
		maps.Copy(out.Inputs, start.Inputs)
	}
	maps.Copy(out.Inputs, inputs)
	for _, name := range start.UntrustedInputs {
		if _, set := out.Inputs[name]; set {
			out.UntrustedInputs = append(out.UntrustedInputs, name)
		}
	}
	return out, nil
}

// members reads a JSON object; nil if it is absent.
func members(doc json.RawMessage) (map[string]json.RawMessage, error) {
	if len(doc) == 0 {
		return nil, nil //nolint:nilnil // absent
	}
	out := map[string]json.RawMessage{}
	if err := json.Unmarshal(doc, &out); err != nil {
		return nil, err
	}
	return out, nil
}

// patch replaces members of a config; null removes one.
func patch(config, changes json.RawMessage) (json.RawMessage, error) {
	all, err := members(config)
	if err != nil {
		return nil, err
	}
	changed, err := members(changes)
	if err != nil {
		return nil, err
	}
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	for name, v := range changed {
		if string(v) == "null" {
			delete(all, name)
			continue
		}
		all[name] = v
	}
	return json.Marshal(all)
}

// editedEntry returns the definition with the edits of a record, and pins the record to it. It is checked
// like a definition that is registered, except for problems of the base in other nodes.
func (s *Starter) editedEntry(ctx context.Context, rec *wire.RunRecord, e *Edit, start *NodeStart) (*definition.Entry, error) {
	base, raw, err := s.edited(ctx, rec.Fork.Edited)
	if err != nil {
		return nil, err
	}
	found, err := e.Lint(ctx, base.Def.Raw, raw)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return nil, e.invalid(base.Def, found)
	}
	rec.WorkflowDigest = (&workflow.Definition{Raw: raw}).Digest()
	entry, err := definition.OfRun(ctx, s.deps.Definitions, rec)
	if err != nil {
		return nil, err
	}
	t := node.CurrentOf(s.deps.Types)[start.TypeID]
	if own := rec.Edit(e.NodeID); own.Outputs != nil {
		if bad := t.CheckOutput(own.Outputs); bad != nil {
			return nil, fault.New(fault.ValidationError, "/outputs: %s", bad.Message).
				With("problems", []fault.Problem{{Path: "/outputs", Message: bad.Message}})
		}
	}
	return entry, nil
}

// edited returns a registered definition, and its document with edits.
func (s *Starter) edited(ctx context.Context, edits *wire.Edited) (base *definition.Entry, raw []byte, err error) {
	if base, err = s.deps.Definitions.ByDigest(ctx, edits.Definition); err != nil {
		return nil, nil, err
	}
	raw, err = definition.Edit(base.Def.Raw, edits)
	return base, raw, err
}

// repin pins a record to the document with its redacted edits, which the run executes, so that no digest
// of a secret is recorded.
func (s *Starter) repin(ctx context.Context, clean *wire.RunRecord) error {
	if clean.Fork == nil || clean.Fork.Edited == nil {
		return nil
	}
	_, raw, err := s.edited(ctx, clean.Fork.Edited)
	if err != nil {
		return err
	}
	clean.WorkflowDigest = (&workflow.Definition{Raw: raw}).Digest()
	return nil
}

// invalid is the error of an edit that the definition does not permit. Paths in the node are those of the
// request.
func (e *Edit) invalid(def *workflow.Definition, found []workflow.Problem) error {
	at := "/nodes/0"
	if !e.Only {
		at = fmt.Sprintf("/nodes/%d", slices.IndexFunc(def.Nodes, func(n workflow.Node) bool { return n.ID == e.NodeID }))
	}
	for i := range found {
		if rest, own := strings.CutPrefix(found[i].Path, at+"/"); own {
			found[i].Path = "/" + rest
		}
	}
	return invalid(fmt.Sprintf("node %q cannot be executed with these changes", e.NodeID), found)
}

// editedGiven is the part of a record's fork that the caller gave.
type editedGiven struct {
	Edited *wire.Edited `json:"edited"`
}

func givenEdits(rec *wire.RunRecord) *editedGiven {
	if rec.Fork == nil || rec.Fork.Edited == nil {
		return nil
	}
	return &editedGiven{rec.Fork.Edited}
}
