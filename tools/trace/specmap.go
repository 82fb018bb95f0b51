package main

import (
	"fmt"
	"os"
	"path"
	"strings"
)

const specMapHead = `# Spec map

Generated from [rules](rules) by ` + "`make gen`" + `; do not edit. Each rule of the protocol, with its packages and tests.
` + "`make trace`" + ` checks the names against the code, and the rules against the protocol, line by line. The
[RFC index](rfc-index.md) has the same by RFC.

`

// specMap renders the page of all ledgers: section, rule, package, test.
func specMap(ledgers []*ledger) string {
	var b strings.Builder
	b.WriteString(specMapHead)
	for _, l := range ledgers {
		fmt.Fprintf(&b, "## %s\n\n%d rules, %d of them not this host's.\n\n| section | rule | packages | tests |\n|---|---|---|---|\n", l.Contract, len(l.Rules), l.absent())
		for _, r := range l.Rules {
			kept := packages(r.Code)
			if r.Absent != "" {
				kept = "not here: " + cell(r.Absent)
			}
			fmt.Fprintf(&b, "| §%s | %s | %s | %s |\n", r.At, cell(r.Rule), kept, tests(r.Test))
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// cell escapes a text for a table cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// packages returns the folders of code references, each once, as links from docs/.
func packages(code list) string {
	var out []string
	seen := map[string]bool{}
	for _, c := range code {
		at, _, _ := strings.Cut(c, "#")
		if path.Ext(at) != "" {
			at = path.Dir(at)
		}
		if !seen[at] {
			seen[at] = true
			out = append(out, folderLink(at))
		}
	}
	return strings.Join(out, ", ")
}

// tests returns the tests grouped by package.
func tests(refs list) string {
	var order []string
	names := map[string][]string{}
	for _, ref := range refs {
		dir, name, _ := strings.Cut(ref, "#")
		if names[dir] == nil {
			order = append(order, dir)
		}
		names[dir] = append(names[dir], "`"+cell(name)+"`")
	}
	for i, dir := range order {
		order[i] = folderLink(dir) + " " + strings.Join(names[dir], " ")
	}
	return strings.Join(order, ", ")
}

func folderLink(dir string) string { return fmt.Sprintf("[%s](../%s)", dir, dir) }

// writeMap writes the page of the ledgers, and next to it the index of the RFCs in rfc.yaml of the
// ledgers' folder.
func writeMap(file string, ledgerPaths []string) error {
	page, err := mapOf(ledgerPaths)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		return err
	}
	index, err := rfcIndexOf(".", path.Join(path.Dir(ledgerPaths[0]), "rfc.yaml"), ledgerPaths)
	if err != nil {
		return err
	}
	return os.WriteFile(path.Join(path.Dir(file), "rfc-index.md"), []byte(index), 0o600)
}

// mapOf reads the ledgers and renders their page.
func mapOf(ledgerPaths []string) (string, error) {
	var all []*ledger
	for _, p := range ledgerPaths {
		l, err := readLedger(p)
		if err != nil {
			return "", err
		}
		all = append(all, l)
	}
	return specMap(all), nil
}

// readLedger reads a ledger from a file.
func readLedger(file string) (*ledger, error) {
	doc, err := os.ReadFile(file) //nolint:gosec // G304: the caller names the file
	if err != nil {
		return nil, err
	}
	l, err := parseLedger(doc)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return l, nil
}
