package lint

import (
	"errors"
	"io/fs"
	"strings"

	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/schema"
)

// kindNames lists the kinds of a folder, of the examples and of packs.
func kindNames(dir string, loaded []*pack.Pack) ([]string, error) {
	files, err := packs.KindFiles(dir)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, e := range entries {
		if kind, ok := strings.CutSuffix(e.Name(), ".schema.json"); ok {
			names = append(names, kind)
		}
	}
	for _, p := range loaded {
		for _, k := range p.Kinds {
			names = append(names, k.Name)
		}
	}
	return names, nil
}

// ruleKind is the rule of files in a folder of kinds that are no kinds.
const ruleKind = "not-a-kind"

// kindFindings returns why a host would reject files of a folder of kinds; none without a folder.
func kindFindings(dir string) ([]finding, error) {
	if dir == "" {
		return nil, nil
	}
	wrong, err := packs.CheckKinds(dir)
	if err != nil {
		return nil, err
	}
	var out []finding
	for _, w := range wrong {
		for _, f := range wrongSchema(w.Kind, w.Doc, w.Err) {
			f.File = w.File
			out = append(out, f.in(w.Doc))
		}
	}
	return out, nil
}

// wrongSchema returns the places of what is wrong with a kind; why is the host's reason.
func wrongSchema(kind string, doc []byte, why error) []finding {
	var out []finding
	for _, f := range (lint{level: schema.LevelAlways}).schema(kind, doc) {
		if f.Rule == schema.RuleNotSchema || f.Rule == schema.RuleUnknownKeyword && !f.Warning {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		message := why.Error()
		if e, ok := errors.AsType[*fault.Error](why); ok {
			message = e.Message
		}
		out = append(out, finding{Rule: ruleKind, Message: message})
	}
	return out
}
