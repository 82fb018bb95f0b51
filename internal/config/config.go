// Package config fills a command's flags from four places: the command line
// beats the environment, which beats the configuration file, which beats the
// default. Every setting has one name, spelled as the flag.
package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
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
			return fmt.Errorf("not a valid --%s: %s", f.Name, f.Usage)
		}
		return nil
	}
	if err := f.Value.Set(values[0]); err != nil {
		return fmt.Errorf("not a valid --%s (%s): %s", f.Name, f.Value.Type(), f.Usage)
	}
	return nil
}

func fromFile(fs *pflag.FlagSet, path string, given map[string]bool) error {
	b, err := os.ReadFile(path) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return fmt.Errorf("--%s: %w", fileFlag, err)
	}
	var doc map[string]yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return fmt.Errorf("--%s %s: want a YAML mapping of flag names to values: %w", fileFlag, path, err)
	}
	var errs []error
	for name, node := range doc {
		f := fs.Lookup(name)
		if f == nil || name == fileFlag {
			errs = append(errs, fmt.Errorf("%s:%d: unknown key %q; keys are the flags' names, such as %s", path, node.Line, name, example(fs)))
			continue
		}
		values, err := scalars(node)
		if err == nil && !given[name] {
			err = set(f, values)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %s: %w", path, node.Line, name, err))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

func example(fs *pflag.FlagSet) string {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return strings.Join(names[:min(len(names), 3)], ", ")
}

func scalars(n yaml.Node) ([]string, error) {
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
