// Package render writes the output of commands as tables, JSON, YAML or names. The format depends
// on flags only, not on the terminal.
package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/protocol/strictjson"
)

// Format is a value of --output.
type Format string

// The formats.
const (
	Table Format = "table"
	Wide  Format = "wide"
	JSON  Format = "json"
	JSONL Format = "jsonl"
	YAML  Format = "yaml"
	Name  Format = "name"
)

// Formats are all formats, in the order of the help.
var Formats = []Format{Table, Wide, JSON, JSONL, YAML, Name}

// text is an alias of table, kept for scripts.
const text Format = "text"

// Known reports whether a value of --output is a format.
func Known(output string) bool {
	_, err := ParseFormat(output)
	return err == nil
}

// ParseFormat parses --output.
func ParseFormat(output string) (Format, error) {
	if Format(output) == text {
		return Table, nil
	}
	if f := Format(output); slices.Contains(Formats, f) {
		return f, nil
	}
	names := make([]string, len(Formats))
	for i, f := range Formats {
		names[i] = string(f)
	}
	return "", fmt.Errorf("--output %q: want %s", output, strings.Join(names, ", "))
}

// ForPeople reports whether the format is a table.
func (f Format) ForPeople() bool { return f == Table || f == Wide }

// Printer writes in one format.
type Printer struct {
	Out     io.Writer
	Format  Format
	Columns []string // of --columns; empty uses the default columns
	Color   bool
	Width   int // of the terminal; 0 means lines are not cut
	// Query transforms documents before they are written; nil disables it.
	Query func(doc []byte, each func([]byte) error) error
	// Raw writes strings as text.
	Raw bool
}

// Document writes one JSON document. human writes the table formats; name is written for `-o name`.
func (p *Printer) Document(doc []byte, name string, human func(io.Writer) error) error {
	if p.Query == nil && p.Format.ForPeople() {
		return human(p.Out)
	}
	if p.Query == nil && p.Format == Name {
		return line(p.Out, name)
	}
	if p.Query == nil {
		return p.one(doc)
	}
	return p.Query(doc, p.one)
}

// one writes a document as JSON, YAML or a line.
func (p *Printer) one(doc []byte) error {
	if text, isText := strictjson.String(doc); isText && p.Raw {
		for l := range strings.SplitSeq(text, "\n") {
			if err := line(p.Out, term.Clean(l)); err != nil {
				return err
			}
		}
		return nil
	}
	switch p.Format {
	case YAML:
		return WriteYAML(p.Out, doc)
	case JSONL:
		var b bytes.Buffer
		if err := json.Compact(&b, doc); err != nil {
			return err
		}
		return line(p.Out, term.EscapeJSON(b.String()))
	default:
		return WriteJSON(p.Out, doc)
	}
}

// Value is Document for a value to be encoded.
func (p *Printer) Value(v any, name string, human func(io.Writer) error) error {
	doc, err := Encode(v)
	if err != nil {
		return err
	}
	return p.Document(doc, name, human)
}

// Encode encodes a value as JSON without escaping HTML.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// WriteJSON writes an indented document without changing order or numbers. Control characters are
// escaped.
func WriteJSON(w io.Writer, doc []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, doc, "", "  "); err != nil {
		return err
	}
	return line(w, term.EscapeJSON(b.String()))
}

// WriteYAML writes a document as YAML, with members in the same order as WriteJSON.
func WriteYAML(w io.Writer, doc []byte) error {
	var n yaml.Node
	if err := yaml.Unmarshal(doc, &n); err != nil { // JSON is YAML
		return err
	}
	plain(&n)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&n); err != nil {
		return err
	}
	return enc.Close()
}

// plain removes the flow style and quotes of JSON. The encoder adds quotes where YAML needs them.
func plain(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, c := range n.Content {
		plain(c)
	}
}

func line(w io.Writer, text string) error {
	_, err := fmt.Fprintln(w, text)
	return err
}
