package lint

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	check "waybill.dev/waybill/services/dispatcher/lint"
)

// lintPack returns the findings of a pack, of the schemas of its kinds and of its prompt templates.
func lintPack(dir string, rules lint) ([]finding, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	defer func() { _ = root.Close() }()
	host := packs.LintOffers()
	host.Partial = true
	base := filepath.Base(dir)
	loaded, notes, err := pack.Load([]pack.Source{{Folder: base, FS: root.FS()}}, host)
	at := func(string) string { return dir }
	if err != nil {
		return packFindings(at, err), nil
	}
	out := noteFindings(at, notes)
	_, wrong, err := (&packs.PromptOptions{}).Check(loaded)
	if err != nil {
		return nil, err
	}
	out = append(out, templateFindings(at, wrong)...)
	out = append(out, fallbackFindings(dir, loaded[0])...)
	for _, k := range loaded[0].Kinds {
		for _, f := range rules.schema(k.Name, k.Schema) {
			f.File = filepath.Join(dir, k.File)
			out = append(out, f)
		}
	}
	return out, nil
}

// loadPacks reads a folder of packs as a host does. There are none if a host would reject one.
func loadPacks(dir, kindsDir string) (loaded []*pack.Pack, found []finding, err error) {
	if dir == "" {
		return nil, nil, nil
	}
	at := func(folder string) string { return filepath.Join(dir, folder) }
	loaded, notes, err := packs.Check(dir, packs.LintOffers())
	if err != nil {
		if len(fault.All(err)) == 0 {
			return nil, nil, exit.Usagef("--packs %s: %w", dir, err)
		}
		return nil, packFindings(at, err), nil
	}
	found = noteFindings(at, notes)
	known, err := kindSchemas(kindsDir, loaded)
	if err != nil {
		return nil, nil, exit.With(exit.Usage, err)
	}
	names := slices.Collect(maps.Keys(known))
	for _, p := range loaded {
		found = append(found, packKindFindings(at(p.Folder), p)...)
		found = append(found, unknownKinds(at(p.Folder), p, names)...)
		found = append(found, fallbackFindings(at(p.Folder), p)...)
	}
	return loaded, found, nil
}

// packKindFindings returns why a host would reject kinds of a pack, and warnings about the others.
func packKindFindings(dir string, p *pack.Pack) (out []finding) {
	wrong, err := packs.CheckPackKinds(p)
	if err != nil {
		return []finding{{File: dir, Rule: ruleKind, Message: err.Error()}}
	}
	for i, k := range p.Kinds {
		found := doubtful(k.Schema)
		if wrong[i] != nil {
			found = wrongSchema(k.Name, k.Schema, wrong[i])
		}
		for _, f := range found {
			f.File = filepath.Join(dir, k.File)
			out = append(out, f)
		}
	}
	return out
}

// unknownKinds warns about kinds that nodes of a pack ask for or accept and that no folder has.
func unknownKinds(dir string, p *pack.Pack, known []string) (out []finding) {
	add := func(file, path, kind string) {
		if slices.Contains(known, kind) || !strings.HasPrefix(kind, "vendor.") {
			return
		}
		remedy := "name the folder of the host's kinds with --kinds"
		if near := schema.Near(kind, known); near != "" {
			remedy = "did you mean " + near + "?"
		}
		message := fmt.Sprintf("no pack has the kind %q; %s", kind, remedy)
		out = append(out, finding{File: filepath.Join(dir, file), Path: path, Rule: check.RuleKind, Warning: true, Message: message})
	}
	for _, n := range p.Nodes {
		if kind, ok := strictjson.String(n.Defaults["envelopeType"]); ok {
			add(pack.OwnFile, "/nodes/"+jsonpointer.Escape(n.TypeID)+"/config/envelopeType", kind)
		}
		if n.Contract != nil {
			for i, kind := range n.Contract.Accepts {
				add(n.ContractFile, fmt.Sprintf("/accepts/%d", i), kind)
			}
		}
	}
	return out
}

// fallbackFindings warns about fallback models of providers that no known vendor has.
func fallbackFindings(dir string, p *pack.Pack) (out []finding) {
	for i, n := range p.Nodes {
		if n.Needs.Fallback == nil {
			continue
		}
		id := n.Needs.Fallback.Provider
		if near := schema.Near(id, models.VendorIDs()); near != "" && !slices.Contains(models.VendorIDs(), id) {
			out = append(out, finding{
				File: filepath.Join(dir, pack.File), Path: fmt.Sprintf("/nodes/%d/fallbackModel/provider", i), Rule: check.RuleProvider, Warning: true,
				Message: fmt.Sprintf("no known vendor has the id %q; did you mean %s?", id, near),
			})
		}
	}
	return out
}

// rulePack is the rule of findings in a manifest and the files it names. rulePackDoubt is that of
// warnings.
const (
	rulePack      = "not-a-pack"
	rulePackDoubt = "pack"
)

// packFindings converts the errors of packs, one finding each; at returns the path of a pack's folder.
func packFindings(at func(folder string) string, err error) []finding {
	var out []finding
	for _, e := range fault.All(err) {
		text := func(name string) string {
			value, _ := e.Details[name].(string)
			return value
		}
		out = append(out, finding{File: filepath.Join(at(text("folder")), text("file")), Path: text("path"), Rule: rulePack, Message: text("problem")})
	}
	return out
}

// noteFindings converts the notes on packs.
func noteFindings(at func(folder string) string, notes []pack.Note) []finding {
	var out []finding
	for _, n := range notes {
		out = append(out, finding{File: filepath.Join(at(n.Folder), n.File), Path: n.Path, Rule: rulePackDoubt, Warning: true, Message: n.Message})
	}
	return out
}

// ruleTemplate is the rule of findings in prompt templates. ruleTemplateDoubt is that of warnings.
const (
	ruleTemplate      = "not-a-template"
	ruleTemplateDoubt = "template"
)

// templateFindings converts the mistakes in prompt templates; at returns the path of a pack's folder.
func templateFindings(at func(folder string) string, wrong []packs.TemplateFinding) []finding {
	var out []finding
	for _, w := range wrong {
		f := finding{File: w.File, Path: w.Path, Rule: ruleTemplate, Message: w.Message}
		if w.Doubt {
			f.Rule, f.Warning = ruleTemplateDoubt, true
		}
		if w.Folder != "" {
			f.File = filepath.Join(at(w.Folder), w.File)
		}
		out = append(out, f)
	}
	return out
}
