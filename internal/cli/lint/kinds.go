package lint

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"

	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// kindNames lists the kinds of a folder, of the examples and of packs.
func kindSchemas(dir string, loaded []*pack.Pack) (map[string]json.RawMessage, error) {
	files, err := packs.KindFiles(dir)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, err
	}
	schemas := map[string]json.RawMessage{}
	for _, e := range entries {
		if kind, ok := strings.CutSuffix(e.Name(), ".schema.json"); ok {
			doc, err := fs.ReadFile(files, e.Name())
			if err != nil {
				return nil, err
			}
			schemas[kind] = doc
		}
	}
	for _, p := range loaded {
		for _, k := range p.Kinds {
			schemas[k.Name] = k.Schema
		}
	}
	return schemas, nil
}

// ruleKind is the rule of files in a folder of kinds that are no kinds.
const ruleKind = "not-a-kind"

// kindFindings returns why a host would reject files of a folder of kinds, and warnings about the others;
// none without a folder.
func kindFindings(dir string) ([]finding, error) {
	if dir == "" {
		return nil, nil
	}
	all, err := packs.CheckKinds(dir)
	if err != nil {
		return nil, err
	}
	var out []finding
	for _, k := range all {
		found := doubtful(k.Doc)
		if k.Err != nil {
			found = wrongSchema(k.Kind, k.Doc, k.Err)
		}
		found = append(found, otherKind(k.Kind, k.Doc)...)
		for _, f := range found {
			f.File = k.File
			out = append(out, f.in(k.Doc))
		}
	}
	unread, err := packs.UnreadKinds(dir)
	for _, file := range unread {
		out = append(out, finding{File: file, Rule: ruleKind, Warning: true, Message: "is not read: kinds are files vendor.HOST.KIND.schema.json directly in the folder; rename or move it"})
	}
	return out, err
}

// otherKind warns about a schema whose $id is the name of another kind: the file's name counts.
func otherKind(kind string, doc []byte) []finding {
	id, _ := strictjson.String(strictjson.Object(doc)["$id"])
	if !pack.VendorKind(id) || id == kind || strings.HasPrefix(id, kind+".") {
		return nil
	}
	return []finding{{Path: "/$id", Rule: ruleKind, Warning: true, Message: "names another kind: the file's name makes it " + kind + "; rename one of the two"}}
}

// doubtful returns what is probably a mistake in a schema that a host accepts.
func doubtful(doc []byte) []finding {
	var out []finding
	for _, f := range schema.Mistakes(doc) {
		out = append(out, finding{Path: f.Path, Rule: f.Rule, Warning: true, Message: f.Message})
	}
	return out
}

// wrongSchema returns the problems of a kind with their places; why is the host's reason.
func wrongSchema(kind string, doc []byte, why error) []finding {
	var out []finding
	if wrong := notASchema(kind, doc); wrong != nil {
		return []finding{*wrong}
	}
	for _, f := range schema.Mistakes(doc) {
		if !f.Warning {
			out = append(out, finding{Path: f.Path, Rule: f.Rule, Message: f.Message})
		}
	}
	if len(out) == 0 {
		f := finding{Rule: ruleKind, Message: why.Error()}
		if e, ok := errors.AsType[*fault.Error](why); ok {
			f.Message = e.Message
			f.Path, _ = e.Details["path"].(string)
		}
		out = append(out, f)
	}
	return out
}
