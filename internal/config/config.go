// Package config fills a command's flags from four places: the command line
// beats the environment, which beats the configuration file, which beats the
// default. Every setting has one name, spelled as the flag.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/suggest"
)

// EnvName returns the environment variable of a flag: WAYBILL_ and the flag's name in capitals,
// with _ for -.
func EnvName(flag string) string {
	return "WAYBILL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// listSeparator separates the values of a repeatable flag in the environment.
const listSeparator = ";"

// fileFlag names the configuration file and cannot be set in it.
const fileFlag = "config"

// Load sets the flags not given on the command line from the environment and the file, and returns
// all errors, joined.
func Load(fs *pflag.FlagSet, getenv func(string) (string, bool)) error {
	var errs []error
	given := map[string]bool{}
	fs.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	fs.VisitAll(func(f *pflag.Flag) {
		v, ok := getenv(EnvName(f.Name))
		if !ok || given[f.Name] {
			return
		}
		given[f.Name] = true
		if err := set(f, split(f, v)); err != nil {
			errs = append(errs, fmt.Errorf("environment %s: %w", EnvName(f.Name), err))
		}
	})
	if f := fs.Lookup(fileFlag); f != nil && f.Value.String() != "" {
		errs = append(errs, fromFile(fs, f.Value.String(), given))
	}
	return errors.Join(errs...)
}

func split(f *pflag.Flag, v string) []string {
	if _, ok := f.Value.(pflag.SliceValue); ok {
		return strings.Split(v, listSeparator)
	}
	return []string{v}
}

// set sets a flag. The error does not repeat the value, which may be a key.
func set(f *pflag.Flag, values []string) error {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		if err := list.Replace(values); err != nil {
			return invalid(f)
		}
		return nil
	}
	if err := f.Value.Set(values[0]); err != nil {
		return invalid(f)
	}
	return nil
}

// forms are the values that a flag takes, by its type.
var forms = map[string]string{
	"bool":     "true or false",
	"duration": "a duration in h, m, s or ms, such as 24h, 1m30s or 500ms",
	"int":      "a whole number without unit, such as 4 or 1048576", "int64": "a whole number without unit, such as 4 or 1048576",
	"uint": "a whole number without unit, such as 4", "uint64": "a whole number without unit, such as 4",
	"float64": "a number such as 0.5",
}

// invalid is the error of a value that a flag does not take.
func invalid(f *pflag.Flag) error {
	form := forms[f.Value.Type()]
	if form == "" {
		return fmt.Errorf("not a valid --%s (%s): %s", f.Name, f.Value.Type(), f.Usage)
	}
	return fmt.Errorf("--%s: want %s; it is the setting: %s", f.Name, form, f.Usage)
}

func fromFile(fs *pflag.FlagSet, path string, given map[string]bool) error {
	b, err := os.ReadFile(path) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return fmt.Errorf("--%s: %w", fileFlag, err)
	}
	var errs []error
	for _, p := range apply(b, []*pflag.FlagSet{fs}, given) {
		if p.Line == 0 {
			return fmt.Errorf("--%s %s: %s", fileFlag, path, p.Message)
		}
		name := strings.TrimPrefix(p.Path, "/")
		if name == "" {
			errs = append(errs, fmt.Errorf("%s:%d: %s", path, p.Line, p.Message))
			continue
		}
		if !isKnown(fs, name) {
			errs = append(errs, fmt.Errorf("%s:%d: unknown key %q; %s", path, p.Line, name, p.Message))
			continue
		}
		errs = append(errs, fmt.Errorf("%s:%d: %s: %s", path, p.Line, name, p.Message))
	}
	return errors.Join(errs...)
}

// Settable reports whether a flag can be set in a file.
func Settable(f *pflag.Flag) bool { return f.Name != fileFlag && f.Name != "help" }

func isKnown(fs *pflag.FlagSet, name string) bool {
	f := fs.Lookup(name)
	return f != nil && Settable(f)
}

// Check returns the mistakes of a configuration file, whose keys are flags of any of the sets. It changes
// the flags. at are the places of the keys.
func Check(doc []byte, sets ...*pflag.FlagSet) (found strictjson.Problems, at map[string]strictjson.Position) {
	at = map[string]strictjson.Position{}
	for key := range keysOf(doc) {
		at[key.Value] = strictjson.Position{Line: key.Line, Column: key.Column}
	}
	return apply(doc, sets, nil), at
}

// keysOf returns the keys of a document and their values; none if it is no mapping.
func keysOf(doc []byte) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		var root yaml.Node
		if yaml.Unmarshal(doc, &root) != nil {
			return
		}
		for _, mapping := range root.Content {
			if mapping.Kind != yaml.MappingNode {
				continue
			}
			for i := 0; i+1 < len(mapping.Content); i += 2 {
				if !yield(mapping.Content[i], mapping.Content[i+1]) {
					return
				}
			}
		}
	}
}

// apply sets the flags of a document that are not given elsewhere, and returns its mistakes by place. A
// document that is no mapping has one, without a place.
func apply(doc []byte, sets []*pflag.FlagSet, given map[string]bool) (found strictjson.Problems) {
	if message, at := notOneMapping(doc); message != "" {
		return strictjson.Problems{{Message: message, Position: at}}
	}
	lines := map[string]int{}
	for key, value := range keysOf(doc) {
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		message := ""
		if first := lines[key.Value]; first > 0 {
			message = fmt.Sprintf("is set in line %d, too; keep one of the two lines", first)
		} else {
			message = applyOne(sets, key.Value, value, given[key.Value])
		}
		lines[key.Value] = key.Line
		if message != "" {
			found = append(found, strictjson.Problem{
				Path: "/" + key.Value, Message: message, Position: strictjson.Position{Line: key.Line, Column: key.Column},
			})
		}
	}
	return found
}

// notOneMapping returns why a file is not one mapping; empty if it is, or if it is empty.
func notOneMapping(doc []byte) (message string, at strictjson.Position) {
	const want = "want a YAML mapping of flag names to values"
	files := yaml.NewDecoder(bytes.NewReader(doc))
	for n := 0; ; {
		var file yaml.Node
		switch err := files.Decode(&file); {
		case errors.Is(err, io.EOF):
			return "", at
		case err != nil:
			return want + ": " + err.Error(), at
		}
		part := file.Content[0]
		at = strictjson.Position{Line: part.Line, Column: part.Column}
		switch {
		case part.ShortTag() == "!!null": // nothing before or after ---
		case part.Kind != yaml.MappingNode:
			return want, at
		case n > 0:
			return "only the first of several YAML documents is read; remove the line ---, so that all keys are in one", at
		default:
			n++
		}
	}
}

// applyOne sets a flag in each set that has it, and returns an error if no set accepts the value.
func applyOne(sets []*pflag.FlagSet, name string, value *yaml.Node, isGiven bool) (message string) {
	var names []string
	known, accepted := false, false
	for _, fs := range sets {
		fs.VisitAll(func(f *pflag.Flag) {
			if Settable(f) {
				names = append(names, f.Name)
			}
		})
		if !isKnown(fs, name) {
			continue
		}
		known = true
		values, err := scalars(*value)
		if err == nil && !isGiven {
			err = set(fs.Lookup(name), values)
		}
		if err != nil {
			message = err.Error()
		}
		accepted = accepted || err == nil
	}
	switch {
	case accepted:
		return ""
	case !known:
		slices.Sort(names)
		return "keys are the flags' names" + suggestion(name, slices.Compact(names))
	default:
		return message
	}
}

func suggestion(name string, names []string) string {
	if near := suggest.Names(name, names, 1); len(near) > 0 {
		return "; did you mean " + near[0] + "?"
	}
	return ", such as " + strings.Join(names[:min(len(names), 3)], ", ")
}

func scalars(n yaml.Node) ([]string, error) {
	if n.ShortTag() == "!!null" {
		return nil, errors.New(`has no value; set one, write "" for an empty text or [] for an empty list, or remove the line`)
	}
	if n.Kind == yaml.ScalarNode {
		return []string{n.Value}, nil
	}
	if n.Kind != yaml.SequenceNode {
		return nil, errors.New("want a value or a list of values")
	}
	var out []string
	for _, c := range n.Content {
		if c.Kind != yaml.ScalarNode {
			return nil, errors.New("want a list of plain values")
		}
		out = append(out, c.Value)
	}
	return out, nil
}
