package pack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/workflow"
)

// NodeType is a node type in a pack.
type NodeType struct {
	TypeID, Version string
	// Base is the host's node type that implements it; empty if it is not executable.
	Base string
	// Defaults are the config members that the pack sets.
	Defaults map[string]json.RawMessage
	// Config, Input and Output validate a node's config as written by its author, its ports, and
	// its outputs; nil means anything is valid.
	Config, Input, Output *schema.Schema
	Contract              *workflow.EnvelopeContract
	// ContractFile is the contract's path within the pack.
	ContractFile string
	Needs        modelgate.Needs
	Secrets      []Secret
	// Requires are the capabilities that the host's runtime must provide.
	Requires []string
	// Sensitive are the output ports with masked values.
	Sensitive map[string]bool
}

// readNodes reads the pack's node types and the files they refer to.
func (p *Pack) readNodes(pack fs.FS, m *Manifest, o *own, h Host) (found []Problem) {
	for i, n := range m.Nodes {
		at := "/nodes/" + strconv.Itoa(i)
		t := NodeType{TypeID: n.TypeID, Version: n.Version, Needs: n.Needs, Secrets: n.RequiresSecrets}
		t.Sensitive = n.sensitive()
		for _, ref := range []struct {
			member, file string
			into         **schema.Schema
		}{
			{"configSchemaRef", n.ConfigSchemaRef, &t.Config}, {"inputSchemaRef", n.InputSchemaRef, &t.Input}, {"outputSchemaRef", n.OutputSchemaRef, &t.Output},
		} {
			if ref.file != "" {
				var wrong []Problem
				*ref.into, wrong = readSchema(pack, at+"/"+ref.member, ref.file)
				found = append(found, wrong...)
			}
		}
		if n.EnvelopeContractRef != "" {
			var wrong []Problem
			t.Contract, wrong = readContract(pack, at+"/envelopeContractRef", n.EnvelopeContractRef)
			t.ContractFile, _ = within(n.EnvelopeContractRef)
			found = append(found, wrong...)
		}
		for _, problem := range n.Check() {
			found = append(found, Problem{File, at + problem.Path, problem.Message})
		}
		if how, reported := o.Nodes[n.TypeID]; reported {
			found = append(found, t.implement(pack, how, n, at, h)...)
		}
		p.Nodes = append(p.Nodes, t)
	}
	for _, a := range m.Agents {
		p.Agents = append(p.Agents, a.ID)
	}
	return found
}

// sensitive returns the output ports marked as sensitive; nil if none.
func (n *Node) sensitive() map[string]bool {
	var out map[string]bool
	for port, o := range n.Outputs {
		if !o.Sensitive {
			continue
		}
		if out == nil {
			out = map[string]bool{}
		}
		out[port] = true
	}
	return out
}

// implement sets how the host implements the node.
func (t *NodeType) implement(pack fs.FS, how made, n Node, manifestAt string, h Host) (found []Problem) {
	at := "/nodes/" + jsonpointer.Escape(t.TypeID)
	known := slices.Contains(h.Types, how.Base)
	if !h.Any && !known {
		found = append(found, Problem{OwnFile, at + "/base", wantBase(how.Base, h.Types)})
	}
	if len(n.RequiredCredentials) > 0 || n.Auth != nil {
		found = append(found, Problem{File, manifestAt, "this host resolves no credentials and no OAuth for nodes; want neither requiredCredentials nor auth"})
	}
	t.Base, t.Defaults, t.Requires = how.Base, maps.Clone(how.Config), how.Requires
	for _, name := range slices.Sorted(maps.Keys(how.ConfigRefs)) {
		if _, ok := within(how.ConfigRefs[name]); !ok {
			continue // reported already
		}
		doc, wrong := readJSON(pack, OwnFile, at+"/configRefs/"+jsonpointer.Escape(name), how.ConfigRefs[name])
		found = append(found, wrong...)
		if t.Defaults == nil {
			t.Defaults = map[string]json.RawMessage{}
		}
		t.Defaults[name] = doc
	}
	if known && h.CheckConfig != nil && len(t.Defaults) > 0 {
		found = append(found, how.placed(at, h.CheckConfig(how.Base, t.Config, t.Defaults))...)
	}
	return found
}

// wantBase is the message for an unknown base.
func wantBase(base string, types []string) string {
	message := "want a node type of this host"
	if near := schema.Near(base, types); near != "" {
		return message + "; did you mean " + near + "?"
	}
	return fmt.Sprintf("%s: one of %v", message, types)
}

// placed sets the places of problems of the config: in the pack's file for this host, or in the file
// that has the member. at is the path of the node.
func (m made) placed(at string, found []Problem) []Problem {
	for i, p := range found {
		first, rest, _ := strings.Cut(strings.TrimPrefix(p.Path, "/"), "/")
		ref, inFile := m.ConfigRefs[jsonpointer.Unescape(first)]
		switch {
		case inFile && rest != "":
			file, _ := within(ref)
			found[i].File, found[i].Path = file, "/"+rest
		case inFile:
			found[i].File, found[i].Path = OwnFile, at+"/configRefs"+p.Path
		default:
			found[i].File, found[i].Path = OwnFile, at+"/config"+p.Path
		}
	}
	return found
}

// readSchema reads a JSON Schema.
func readSchema(pack fs.FS, at, ref string) (*schema.Schema, []Problem) {
	if _, ok := within(ref); !ok {
		return nil, nil // reported already
	}
	doc, found := readJSON(pack, File, at, ref)
	if found != nil {
		return nil, found
	}
	name, _ := within(ref)
	s, err := schema.Compile(ref, doc)
	if err != nil {
		if e, ok := errors.AsType[*schema.Error](err); ok {
			return nil, []Problem{{name, e.Path, e.Explain(doc)}}
		}
		return nil, []Problem{{name, "", err.Error()}}
	}
	for _, f := range schema.UnknownKeywords(doc) {
		if !f.Warning { // values would not be checked for what the author wants
			found = append(found, Problem{name, f.Path, f.Message})
		}
	}
	return s, found
}
