package definition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// Documents finds registered documents.
type Documents interface {
	ByDigest(ctx context.Context, digest string) (*Entry, error)
}

// OfRun returns the definition that a run executes: the document of its digest or, for a fork with edited
// nodes, that document with the edits of the run's record.
func OfRun(ctx context.Context, docs Documents, rec *wire.RunRecord) (*Entry, error) {
	if rec.Fork == nil || rec.Fork.Edited == nil {
		return docs.ByDigest(ctx, rec.WorkflowDigest)
	}
	base, err := docs.ByDigest(ctx, rec.Fork.Edited.Definition)
	if err != nil {
		return nil, err
	}
	raw, err := Edit(base.Def.Raw, rec.Fork.Edited)
	if err != nil {
		return nil, damaged().Wrap(err)
	}
	def, problems := workflow.ParseStored(raw)
	if len(problems) > 0 {
		return nil, damaged().Wrap(errors.New(problems[0].Path + ": " + problems[0].Message))
	}
	flow, _ := Compile(def) // as in ByDigest
	return &Entry{Def: def, Graph: workflow.Compile(def), Flow: flow, Digest: rec.WorkflowDigest}, nil
}

// Edit returns a document with edited nodes. If the edits name an only node, the document has no other.
// The same document and edits give the same bytes.
func Edit(doc []byte, edited *wire.Edited) ([]byte, error) {
	var def map[string]json.RawMessage
	if err := json.Unmarshal(doc, &def); err != nil {
		return nil, fmt.Errorf("read the definition: %w", err)
	}
	var nodes []map[string]json.RawMessage
	if err := json.Unmarshal(def["nodes"], &nodes); err != nil {
		return nil, fmt.Errorf("read the nodes of the definition: %w", err)
	}
	var kept []map[string]json.RawMessage
	for _, n := range nodes {
		var id string
		if err := json.Unmarshal(n["id"], &id); err != nil {
			return nil, fmt.Errorf("read a node of the definition: %w", err)
		}
		if edited.Only != "" && id != edited.Only {
			continue
		}
		for i := range edited.Nodes {
			if edited.Nodes[i].NodeID != id {
				continue
			}
			if err := editNode(n, &edited.Nodes[i]); err != nil {
				return nil, fmt.Errorf("edit node %s: %w", id, err)
			}
		}
		kept = append(kept, n)
	}
	var err error
	if def["nodes"], err = json.Marshal(kept); err != nil {
		return nil, fmt.Errorf("render the nodes of the definition: %w", err)
	}
	if edited.Only != "" {
		def["edges"], def["triggers"] = json.RawMessage("[]"), json.RawMessage("[]")
	}
	return json.Marshal(def)
}

// editNode changes a node of a document.
func editNode(n map[string]json.RawMessage, e *wire.NodeEdit) error {
	if e.Config != nil {
		n["config"] = e.Config
	}
	if len(e.Inputs) == 0 {
		return nil
	}
	ports := map[string]json.RawMessage{}
	if given := n["inputs"]; given != nil {
		if err := json.Unmarshal(given, &ports); err != nil {
			return err
		}
	}
	for name, value := range e.Inputs {
		port, err := json.Marshal(staticPort{Type: workflow.PortStatic, Value: value})
		if err != nil {
			return err
		}
		ports[name] = port
	}
	var err error
	n["inputs"], err = json.Marshal(ports)
	return err
}

type staticPort struct {
	Type  workflow.PortType `json:"type"`
	Value json.RawMessage   `json:"value"`
}
