package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/document"
	"waybill.dev/waybill/internal/cli/editorschema"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/host/settingsfile"
	"waybill.dev/waybill/protocol/strictjson"
)

func settingsNames() []string {
	var out []string
	for _, k := range settingsfile.Kinds() {
		out = append(out, k.Name)
	}
	return out
}

// Settings is `waybill settings`.
func Settings(s *session.Session) *cobra.Command {
	c := &cobra.Command{Use: "settings", Short: "Check the settings files of a host"}
	c.AddCommand(settingsLintCommand(s))
	return c
}

func settingsLintCommand(s *session.Session) *cobra.Command {
	var as string
	c := &cobra.Command{
		Use:   "lint FILE|-...",
		Short: "Check settings files as a host does",
		Long: `Checks the JSON files of --models, --provider-policies, --provider-settings, --rate-limits,
--tenant-limits and --tool-limits as a host does when it reads them. All mistakes of a file are listed,
each with file, line and column, the JSON pointer, and what is allowed. - is standard input.

The kind of a file is that of its $schema member, for example
` + editorschema.Base + `rate-limits.schema.json, or else of its name, such as rate-limits.json.
--as sets it. The schemas are in the folder schemas of the repository, and a host serves them at
/schemas/.

Exit status: 0 no findings; 1 a host would reject a file; 2 usage, or an unreadable file.`,
		Example: `  waybill settings lint rate-limits.json tenant-limits.json
  waybill settings lint --as provider-settings -o github providers.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			if as != "" && !slices.Contains(settingsNames(), as) {
				return exit.Usagef("--as %q: want %s", as, strings.Join(settingsNames(), ", "))
			}
			p, format, err := reportPrinter(s, cmd)
			if err != nil {
				return err
			}
			return lintSettings(cmd.InOrStdin(), p, format, as, files)
		},
	}
	c.Flags().StringVar(&as, "as", "", "kind of the files: "+strings.Join(settingsNames(), ", "))
	s.FormatFlags(c.Flags())
	describeFormats(c.Flags())
	return c
}

// lintSettings reports the mistakes in all files, and fails if there are any.
func lintSettings(stdin io.Reader, p *render.Printer, format, as string, files []string) error {
	var all []finding
	for _, name := range files {
		doc, err := document.Read(stdin, name)
		if err != nil {
			return err
		}
		kind, err := settingsKindOf(name, as, doc)
		if err != nil {
			return err
		}
		for _, f := range settingsFindings(kind.Check(doc)) {
			f.File = name
			all = append(all, f.in(doc))
		}
	}
	if err := reportFindings(p, format, all); err != nil {
		return err
	}
	if len(all) > 0 {
		return countError{len(all), len(files)}
	}
	return nil
}

// settingsKindOf returns the kind of a file: as, or that of its $schema, or of its name.
func settingsKindOf(file, as string, doc []byte) (settingsfile.Kind, error) {
	var d struct {
		Schema string `json:"$schema"`
	}
	_ = json.Unmarshal(doc, &d) // a document that is not JSON has its name only
	kinds := settingsfile.Kinds()
	for _, name := range []string{
		as, strings.TrimSuffix(path.Base(d.Schema), ".schema.json"), strings.TrimSuffix(filepath.Base(file), ".json"),
	} {
		if i := slices.IndexFunc(kinds, func(k settingsfile.Kind) bool { return k.Name == name }); i >= 0 {
			return kinds[i], nil
		}
	}
	return settingsfile.Kind{}, exit.Usagef("%s: its kind is unknown; set --as to %s, or add the member $schema, such as %q",
		file, strings.Join(settingsNames(), ", "), editorschema.Base+"rate-limits.schema.json")
}

// ruleSettings is the rule of mistakes in settings files.
const ruleSettings = "settings"

// settingsFindings converts the mistakes of a file.
func settingsFindings(err error) []finding {
	if err == nil {
		return nil
	}
	found, ok := errors.AsType[strictjson.Problems](err)
	if !ok {
		return []finding{{Rule: ruleSettings, Message: fmt.Sprint(err)}}
	}
	var out []finding
	for _, p := range found {
		out = append(out, finding{Path: p.Path, Rule: ruleSettings, Message: p.Message})
	}
	return out
}
