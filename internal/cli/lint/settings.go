package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/cli/configfile"
	"waybill.dev/waybill/internal/cli/document"
	"waybill.dev/waybill/internal/cli/editorschema"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/host/settingsfile"
	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/services/dispatcher/provider/sample"
)

func settingsNames() []string {
	var out []string
	for _, k := range configfile.Kinds() {
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
	o := settingsOptions{}
	c := &cobra.Command{
		Use:   "lint FILE|-...",
		Short: "Check settings files as a host does",
		Long: `Checks the files of --models, --provider-policies, --provider-settings, --rate-limits, --tenant-limits
and --tool-limits, and the YAML files of --config and --secrets-file, as a host does when it reads them.
All mistakes of a file are listed, each with file, line and column, the JSON pointer, and what is
allowed, and as warnings what is probably a mistake. - is standard input. Findings in secrets have no ids and no values.

The kind of a file is that of its $schema member, for example
` + editorschema.Base + `rate-limits.schema.json, or else of its name, such as rate-limits.json, or
else the only kind that has its members. --kind sets it. The schemas are in the folder schemas of the
repository, and a host serves them at /schemas/.

Names of providers, MCP servers and A2A agents are checked against those of --provider, --mcp-server and
--a2a-agent, which are those of the host, and against the providers of the files. Without the flags the
host may have others: an unknown provider is a warning, or an error if it is close to a known one.
Variables and files that the settings name are not read: the host does that when it starts. A file of
--config is checked as the command with its keys does it: dev, or a service of serve.

Exit status: 0 no findings; 1 a host would reject a file; 2 usage, or an unreadable file.`,
		Example: `  waybill settings lint rate-limits.json tenant-limits.json
  waybill settings lint --kind provider-settings -o github providers.json
  waybill settings lint --provider house=http://127.0.0.1:11434/v1 provider-policies.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			if o.kind != "" && !slices.Contains(settingsNames(), o.kind) {
				return exit.Usagef("--kind %q: want %s", o.kind, strings.Join(settingsNames(), ", "))
			}
			p, format, err := reportPrinter(s, cmd)
			if err != nil {
				return err
			}
			return o.lint(cmd, p, format, files)
		},
	}
	c.Flags().StringVar(&o.kind, "kind", "", "kind of the files: "+strings.Join(settingsNames(), ", "))
	c.Flags().StringArrayVar(&o.providers, "provider", nil, "a provider of the host, as ID or ID=URL; repeatable")
	c.Flags().StringArrayVar(&o.servers, "mcp-server", nil, "an MCP server of the host, as ID or ID=URL; repeatable")
	c.Flags().StringArrayVar(&o.agents, "a2a-agent", nil, "an A2A agent of the host, as ID or ID=URL; repeatable")
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "as" { // its former name
			name = "kind"
		}
		return pflag.NormalizedName(name)
	})
	s.FormatFlags(c.Flags())
	describeFormats(c.Flags())
	return c
}

// settingsOptions are the flags of `waybill settings lint`.
type settingsOptions struct {
	kind                       string
	providers, servers, agents []string
}

// settingsDoc is a file to check.
type settingsDoc struct {
	name string
	doc  []byte
	kind settingsfile.Kind
}

// lint reports the mistakes in all files, and fails if there are any.
func (o *settingsOptions) lint(cmd *cobra.Command, p *render.Printer, format string, files []string) error {
	var (
		docs []settingsDoc
		all  []finding
	)
	for _, name := range files {
		doc, err := document.Read(cmd.InOrStdin(), name)
		if err != nil {
			return err
		}
		kind, err := settingsKindOf(name, o.kind, doc)
		if err != nil {
			return err
		}
		if o.kind == "" {
			session.Notice(cmd, "%s: checked as %s", name, kind.Name)
		}
		docs = append(docs, settingsDoc{name, doc, kind})
	}
	wrong := 0
	for _, d := range docs {
		var doubts []finding
		on := o.host(docs, func(p strictjson.Problem) {
			doubts = append(doubts, finding{Path: p.Path, Rule: ruleSettings, Warning: true, Message: p.Message})
		})
		found := settingsFindings(d.kind.Check(d.doc, on))
		if len(found) == 0 {
			for _, p := range d.kind.Doubts(d.doc, on) {
				doubts = append(doubts, finding{Path: p.Path, Line: p.Line, Column: p.Column, Rule: ruleSettings, Warning: true, Message: p.Message})
			}
		}
		wrong += len(found)
		for _, f := range append(found, doubts...) {
			f.File = d.name
			if !d.kind.YAML {
				f = f.in(d.doc)
			}
			all = append(all, f)
		}
	}
	if err := reportFindings(p, format, all); err != nil {
		return err
	}
	if wrong > 0 {
		return countError{wrong, len(files)}
	}
	return nil
}

// host is what is known of the host; doubt gets the providers that it may not have.
func (o *settingsOptions) host(docs []settingsDoc, doubt func(strictjson.Problem)) settingsfile.Host {
	known := append(models.VendorIDs(), sample.ID, mock.ID)
	for _, d := range docs {
		if d.kind.Name == settingsfile.ProviderSettings {
			known = append(known, limit.Described(d.doc)...)
		}
	}
	on := settingsfile.Host{Providers: &settings.Names{
		Known:  append(known, ids(o.providers)...),
		Open:   len(o.providers) == 0,
		Doubt:  doubt,
		Others: "--provider ID if the host has it",
	}}
	for _, d := range docs {
		if d.kind.Name == settingsfile.Models {
			on.Models, _ = catalogue.Parse(d.doc) // nil if it is wrong, which is a finding of its own
		}
	}
	if len(o.servers) > 0 {
		on.MCPServers = &settings.Names{Known: ids(o.servers)}
	}
	if len(o.agents) > 0 {
		on.A2AAgents = &settings.Names{Known: ids(o.agents)}
	}
	return on
}

// ids returns the ids of flags of the form ID or ID=TARGET.
func ids(flags []string) (out []string) {
	for _, f := range flags {
		id, _, _ := strings.Cut(f, "=")
		out = append(out, id)
	}
	return out
}

// settingsKindOf returns the kind of a file: as, or that of its $schema, or of its name, or the only one
// that has its members.
func settingsKindOf(file, as string, doc []byte) (settingsfile.Kind, error) {
	var d struct {
		Schema string `json:"$schema"`
	}
	_ = json.Unmarshal(doc, &d) // a document that is not JSON has its name only
	kinds := configfile.Kinds()
	for _, name := range []string{
		as, strings.TrimSuffix(path.Base(d.Schema), ".schema.json"), strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)),
	} {
		if i := slices.IndexFunc(kinds, func(k settingsfile.Kind) bool { return k.Name == name }); i >= 0 {
			return kinds[i], nil
		}
	}
	if fitting := slices.DeleteFunc(kinds, func(k settingsfile.Kind) bool { return !hasMembers(k, doc) }); len(fitting) == 1 {
		return fitting[0], nil
	}
	return settingsfile.Kind{}, exit.Usagef("%s: its kind is unknown; set --kind to %s, or add the member $schema, such as %q",
		file, strings.Join(settingsNames(), ", "), editorschema.Base+"rate-limits.schema.json")
}

// hasMembers reports whether a document has members of a kind only, with all that the kind requires.
func hasMembers(k settingsfile.Kind, doc []byte) bool {
	var (
		members map[string]json.RawMessage
		form    struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
		}
	)
	if json.Unmarshal(doc, &members) != nil || json.Unmarshal(k.Schema, &form) != nil || len(members) == 0 {
		return false
	}
	for name := range members {
		if _, known := form.Properties[name]; !known {
			return false
		}
	}
	return !slices.ContainsFunc(form.Required, func(name string) bool { _, there := members[name]; return !there })
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
		out = append(out, finding{Path: p.Path, Line: p.Line, Column: p.Column, Rule: ruleSettings, Message: p.Message})
	}
	return out
}
