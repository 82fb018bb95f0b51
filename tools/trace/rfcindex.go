package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const rfcIndexHead = `# RFC index

For readers who know the protocol by its RFCs: each part of an RFC with its rules, their code and their tests. The
[spec map](spec-map.md) lists all rules by section of the contract. Generated from [rules/rfc.yaml](rules/rfc.yaml) by
` + "`make gen`" + `; do not edit.

`

// rfcFile is docs/rules/rfc.yaml.
type rfcFile struct {
	RFCs []rfc `yaml:"rfcs"`
}

// rfc is an RFC of the protocol.
type rfc struct {
	RFC   string    `yaml:"rfc"` // four digits
	Title string    `yaml:"title"`
	Parts []rfcPart `yaml:"parts"`
}

// rfcPart is a part of an RFC. An entry of Rules is "LEDGER SECTION" or "LEDGER SECTION: START",
// where START is the start of a rule.
type rfcPart struct {
	At    string `yaml:"at"`
	Rules list   `yaml:"rules"`
}

// parseRFCs parses the file and rejects unknown members.
func parseRFCs(doc []byte) (*rfcFile, error) {
	f := &rfcFile{}
	d := yaml.NewDecoder(bytes.NewReader(doc))
	d.KnownFields(true)
	return f, d.Decode(f)
}

// rulesOf returns the rules that an entry selects.
func rulesOf(ledgers map[string]*ledger, entry string) ([]rule, error) {
	place, start, _ := strings.Cut(entry, ": ")
	name, section, _ := strings.Cut(place, " ")
	l := ledgers[name]
	if l == nil {
		return nil, fmt.Errorf("%q: unknown ledger %q", entry, name)
	}
	var out []rule
	for _, r := range l.Rules {
		if r.At == section && strings.HasPrefix(r.Rule, start) {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%q: no such rule", entry)
	}
	return out, nil
}

// rfcIndex renders the page. citations has the files that cite each RFC.
func rfcIndex(f *rfcFile, ledgers map[string]*ledger, citations map[string][]string) (string, error) {
	var b strings.Builder
	b.WriteString(rfcIndexHead)
	for _, r := range f.RFCs {
		fmt.Fprintf(&b, "## RFC %s: %s\n\n| part | rule | code | tests |\n|---|---|---|---|\n", r.RFC, r.Title)
		for _, p := range r.Parts {
			for _, entry := range p.Rules {
				rules, err := rulesOf(ledgers, entry)
				if err != nil {
					return "", fmt.Errorf("RFC %s, %s: %w", r.RFC, p.At, err)
				}
				for _, x := range rules {
					code := symbols(x.Code)
					if x.Absent != "" {
						code = "not here: " + cell(x.Absent)
					}
					ledger, _, _ := strings.Cut(entry, " ")
					fmt.Fprintf(&b, "| %s | %s §%s: %s | %s | %s |\n", cell(p.At), ledger, x.At, cell(x.Rule), code, tests(x.Test))
				}
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("## Comments that cite an RFC\n\n| RFC | files |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(citations)) {
		fmt.Fprintf(&b, "| %s | %s |\n", name, strings.Join(citations[name], ", "))
	}
	return b.String(), nil
}

// symbols returns code references as links from docs/, with the symbol of each.
func symbols(code list) string {
	out := make([]string, len(code))
	for i, c := range code {
		at, name, ok := strings.Cut(c, "#")
		out[i] = fmt.Sprintf("[%s](../%s)", strings.TrimSuffix(strings.TrimPrefix(at, "services/"), ".go"), at)
		if ok {
			out[i] += " `" + name + "`"
		}
	}
	return strings.Join(out, ", ")
}

// citation matches a citation of an OpenWOP RFC, whose numbers start with 0.
var citation = regexp.MustCompile(`RFC (0[0-9]{3})( §[A-Z](\.[0-9]+)?( step [0-9]+)?)?`)

// cited returns the Go files below root that cite each RFC, as links from docs/.
func cited(root string) (map[string][]string, error) {
	out := map[string][]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && file != root || d.Name() == "node_modules" || d.Name() == "tools") {
			return filepath.SkipDir
		}
		if path.Ext(file) != ".go" {
			return nil
		}
		text, err := os.ReadFile(file) //nolint:gosec // G304: a file of the repository
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		link := fmt.Sprintf("[%s](../%s)", filepath.ToSlash(rel), filepath.ToSlash(rel))
		for _, m := range citation.FindAllString(string(text), -1) {
			name := strings.TrimPrefix(m, "RFC ")
			if !slices.Contains(out[name], link) {
				out[name] = append(out[name], link)
			}
		}
		return nil
	})
	return out, err
}

// rfcIndexOf reads the files and renders the page. Ledgers are named as their files.
func rfcIndexOf(root, rfcPath string, ledgerPaths []string) (string, error) {
	doc, err := os.ReadFile(rfcPath) //nolint:gosec // G304: the caller names the file
	if err != nil {
		return "", err
	}
	f, err := parseRFCs(doc)
	if err != nil {
		return "", fmt.Errorf("%s: %w", rfcPath, err)
	}
	ledgers := map[string]*ledger{}
	for _, p := range ledgerPaths {
		if ledgers[strings.TrimSuffix(path.Base(p), ".yaml")], err = readLedger(p); err != nil {
			return "", err
		}
	}
	citations, err := cited(root)
	if err != nil {
		return "", err
	}
	return rfcIndex(f, ledgers, citations)
}
