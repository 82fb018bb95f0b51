package lint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

// lintPack returns the errors of a pack and the findings in the schemas of its kinds.
func lintPack(dir string, rules lint) ([]finding, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", exit.ErrUsage, err)
	}
	defer func() { _ = root.Close() }()
	packs, _, err := pack.Load([]pack.Source{{Folder: filepath.Base(dir), FS: root.FS()}}, pack.Host{Any: true})
	if err != nil {
		return packFindings(dir, err), nil
	}
	out := templateFindings(dir, packs[0])
	for _, k := range packs[0].Kinds {
		for _, f := range rules.schema(k.Name, k.Schema) {
			f.File = filepath.Join(dir, k.File)
			out = append(out, f)
		}
	}
	return out, nil
}

// rulePack is the rule of findings in a manifest and the files it names.
const rulePack = "not-a-pack"

// packFindings converts the errors of a pack, one finding each.
func packFindings(dir string, err error) []finding {
	var out []finding
	for _, e := range fault.All(err) {
		file, _ := e.Details["file"].(string)
		path, _ := e.Details["path"].(string)
		problem, _ := e.Details["problem"].(string)
		out = append(out, finding{File: filepath.Join(dir, file), Path: path, Rule: rulePack, Message: problem})
	}
	return out
}

// ruleTemplate is the rule of findings in prompt templates.
const ruleTemplate = "not-a-template"

// templateFindings returns the errors of a pack's prompt templates.
func templateFindings(dir string, p *pack.Pack) []finding {
	var out []finding
	for _, f := range p.Prompts {
		_, err := prompt.Parse(f.Document)
		if wrong, ok := errors.AsType[*prompt.ParseError](err); ok {
			for _, p := range wrong.Problems {
				out = append(out, finding{File: filepath.Join(dir, f.File), Path: p.Path, Rule: ruleTemplate, Message: p.Message})
			}
		}
	}
	return out
}
