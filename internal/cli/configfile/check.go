package configfile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/cli/hostflags"
	"waybill.dev/waybill/internal/config"
	"waybill.dev/waybill/protocol/strictjson"
)

// check returns all mistakes of a document: keys that are no flags, values that a flag does not take, and
// what the program of the file rejects at its start. The program is the one that has all keys, and the
// fewest mistakes.
func check(doc []byte) error {
	all := programs()
	var sets []*pflag.FlagSet
	for _, p := range all {
		sets = append(sets, p.Flags())
	}
	found, places := config.Check(doc, sets...)
	wrong := map[string]bool{}
	for _, p := range found {
		wrong[strings.TrimPrefix(p.Path, "/")] = true
	}
	keys := map[string]strictjson.Position{}
	for key, at := range places {
		if !wrong[key] {
			keys[key] = at
		}
	}
	if more := fewest(all, keys); len(more) > 0 {
		found = append(found, more...)
		slices.SortStableFunc(found, func(a, b strictjson.Problem) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
	}
	if len(found) > 0 {
		return found
	}
	return nil
}

// fewest returns the mistakes of the program that has most of the keys, and of those the fewest mistakes.
func fewest(all []hostflags.Program, keys map[string]strictjson.Position) strictjson.Problems {
	var (
		best    strictjson.Problems
		foreign = len(keys) + 1
	)
	for _, p := range all {
		others := foreignKeys(p, all, keys)
		if len(others) > foreign {
			continue
		}
		mistakes := append(others, rejected(p.Check(), keys)...)
		if len(others) < foreign || len(mistakes) < len(best) {
			best, foreign = mistakes, len(others)
		}
	}
	return best
}

// foreignKeys returns the keys that are flags of other programs only.
func foreignKeys(p hostflags.Program, all []hostflags.Program, keys map[string]strictjson.Position) (out strictjson.Problems) {
	for key, at := range keys {
		if p.Flags().Lookup(key) != nil {
			continue
		}
		var of []string
		for _, other := range all {
			if other.Flags().Lookup(key) != nil {
				of = append(of, nameOf(other))
			}
		}
		out = append(out, strictjson.Problem{
			Path: "/" + key, Position: at,
			Message: fmt.Sprintf("%s has the other keys, but no such flag; it is a flag of %s", nameOf(p), strings.Join(of, ", ")),
		})
	}
	return out
}

// nameOf is the command line of a program.
func nameOf(p hostflags.Program) string {
	if p.Name() == "dev" {
		return "waybill dev"
	}
	return "waybill serve " + p.Name()
}

// rejected returns the errors of values that the file sets. An error begins with the flags that it is about.
func rejected(err error, keys map[string]strictjson.Position) (out strictjson.Problems) {
	for _, err := range leaves(err) {
		message := err.Error()
		subject, _, _ := strings.Cut(message, ": ")
		for _, m := range flagName.FindAllStringSubmatch(subject, -1) {
			if at, set := keys[m[1]]; set {
				out = append(out, strictjson.Problem{Path: "/" + m[1], Message: message, Position: at})
				break
			}
		}
	}
	return out
}

// flagName matches a flag in an error.
var flagName = regexp.MustCompile(`--([a-z][a-z0-9-]*)`)

// leaves are the errors that are joined in err. An error that wraps several in a text of its own is one.
func leaves(err error) (out []error) {
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // the tree itself
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	var texts []string
	for _, part := range joined.Unwrap() {
		texts = append(texts, part.Error())
		out = append(out, leaves(part)...)
	}
	if strings.Join(texts, "\n") != err.Error() {
		return []error{err}
	}
	return out
}
