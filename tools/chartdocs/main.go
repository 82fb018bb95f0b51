// Command chartdocs writes the table of values into a chart's README.md. A comment "# -- TEXT" in
// values.yaml describes the value below it.
//
//	chartdocs [-check] CHART
//
// With -check it writes nothing, and fails if the table is out of date.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail if the table is another")
	flag.Parse()
	if err := run(flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, "chartdocs:", err)
		os.Exit(1)
	}
}

func run(chart string, check bool) error {
	if chart == "" {
		return errors.New("want the folder of a chart")
	}
	values, err := os.ReadFile(filepath.Join(chart, "values.yaml")) //nolint:gosec // G304: the caller names the chart
	if err != nil {
		return err
	}
	table, err := describe(values)
	if err != nil {
		return fmt.Errorf("values.yaml: %w", err)
	}
	file := filepath.Join(chart, "README.md")
	old, err := os.ReadFile(file) //nolint:gosec // G304: the caller names the chart
	if err != nil {
		return err
	}
	doc, err := replace(string(old), table)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if doc == string(old) {
		return nil
	}
	if check {
		return fmt.Errorf("%s: the table is not that of values.yaml; `make gen ONLY=chart` writes it", file)
	}
	return os.WriteFile(file, []byte(doc), 0o644) //nolint:gosec // G306: a public document
}

// The lines around the table.
const (
	begin = "<!-- values: written by tools/chartdocs -->"
	end   = "<!-- end of values -->"
)

func replace(doc, table string) (string, error) {
	head, rest, ok := strings.Cut(doc, begin)
	_, tail, also := strings.Cut(rest, end)
	if !ok || !also {
		return "", fmt.Errorf("want the lines %q and %q", begin, end)
	}
	return head + begin + "\n" + table + end + tail, nil
}

// mark precedes the description of a value.
const mark = "# -- "

// describe returns the table of a values file.
func describe(values []byte) (string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(values, &doc); err != nil {
		return "", err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return "", errors.New("want a mapping")
	}
	t := table{}
	t.buf.WriteString("| value | default | meaning |\n|---|---|---|\n")
	if err := t.mapping("", doc.Content[0]); err != nil {
		return "", err
	}
	return t.buf.String(), nil
}

type table struct{ buf bytes.Buffer }

// mapping adds the described values of a mapping, and walks into the others.
func (t *table) mapping(prefix string, m *yaml.Node) error {
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		name := prefix + key.Value
		words, ok := about(key.HeadComment)
		switch {
		case ok:
			def, err := flow(value)
			if err != nil {
				return err
			}
			fmt.Fprintf(&t.buf, "| `%s` | %s | %s |\n", name, def, strings.ReplaceAll(words, "|", `\|`))
		case value.Kind == yaml.MappingNode && len(value.Content) > 0:
			if err := t.mapping(name+".", value); err != nil {
				return err
			}
		default:
			return fmt.Errorf("line %d: %s: nothing says what it means; write %q above it", key.Line, name, mark+"…")
		}
	}
	return nil
}

// about returns a comment's description of a value. Lines before the mark are for readers of the
// file.
func about(comment string) (string, bool) {
	_, words, ok := strings.Cut(comment, mark)
	if !ok {
		return "", false
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(words, "\n#", "\n")), " "), true
}

// flow renders a value on one line.
func flow(v *yaml.Node) (string, error) {
	if v.Kind == yaml.ScalarNode && v.Value == "" {
		return "", nil
	}
	if v.Kind == yaml.ScalarNode {
		return "`" + v.Value + "`", nil
	}
	if len(v.Content) == 0 {
		return "", nil
	}
	line := plain(v)
	out, err := yaml.Marshal(line)
	if err != nil {
		return "", err
	}
	return "`" + strings.Join(strings.Fields(string(out)), " ") + "`", nil
}

// plain copies a value without comments, in flow style.
func plain(v *yaml.Node) *yaml.Node {
	n := &yaml.Node{Kind: v.Kind, Tag: v.Tag, Value: v.Value, Style: yaml.FlowStyle}
	for _, c := range v.Content {
		n.Content = append(n.Content, plain(c))
	}
	if v.Kind == yaml.ScalarNode {
		n.Style = v.Style
	}
	return n
}
