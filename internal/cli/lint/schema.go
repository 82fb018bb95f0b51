// Package lint has the commands that check schemas, packs and workflow definitions without a host.
package lint

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/document"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/protocol/schema"
)

// Schema is `waybill schema`.
func Schema(s *session.Session) *cobra.Command {
	c := &cobra.Command{Use: "schema", Short: "Check JSON Schemas of envelope payloads"}
	c.AddCommand(schemaLintCommand(s))
	return c
}

func schemaLintCommand(s *session.Session) *cobra.Command {
	var level, vendor string
	var rewrites bool
	c := &cobra.Command{
		Use:   "lint FILE|PACK...",
		Short: "Check payload schemas against the subset that models support",
		Long: `Checks payload schemas against the structured-output subset of OpenWOP (Tier 1). Each finding
has the place, the rule, the vendors it concerns and a fix. - is standard input. For a folder with
a pack.json, checks the manifest of the pack and the schemas of its kinds.

--level always checks the rules for all envelope kinds: no oneOf and similar keywords, depth, a
discriminator for each variant. --level strict adds the rules of the vendors' strict modes: closed
objects, every property required, no constraints.

Schemas need not follow the strict rules: the host sends a model a projection of the schema. A
finding names a vendor if the schema cannot be projected for it, for example because it is too
deep. --vendor checks one vendor or engine only. --rewrites also lists, as warnings, what is sent in
another form: each place, the rule, and the vendors.

Exit status: 0 no findings, or warnings only; 1 findings; 2 usage, or an unreadable file.`,
		Example: `  waybill schema lint kinds/*.schema.json
  waybill schema lint --level strict -o json ticket.schema.json
  waybill schema lint ./packs/acme-notes`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			l, ok := map[string]schema.Level{"always": schema.LevelAlways, "strict": schema.LevelStrict}[level]
			if !ok {
				return exit.Usagef("--level %q: want always or strict", level)
			}
			vendors, err := vendorsNamed(vendor)
			if err != nil {
				return err
			}
			p, format, err := reportPrinter(s, cmd)
			if err != nil {
				return err
			}
			return lintSchemas(cmd.InOrStdin(), p, format, files, lint{level: l, vendors: vendors, rewrites: rewrites})
		},
	}
	c.Flags().StringVar(&level, "level", "always", "always or strict")
	c.Flags().StringVar(&vendor, "vendor", allVendors, "vendor or engine to project the schemas for, such as openai, groq or ollama; all: openai, anthropic and gemini")
	c.Flags().BoolVar(&rewrites, "rewrites", false, "also list what is sent to vendors in another form")
	s.FormatFlags(c.Flags())
	describeFormats(c.Flags())
	return c
}

// lintSchemas reports the findings in all files, and fails if there are any.
func lintSchemas(stdin io.Reader, p *render.Printer, format string, files []string, rules lint) error {
	var all []finding
	for _, name := range files {
		if packs.IsPack(name) {
			found, err := lintPack(name, rules)
			if err != nil {
				return err
			}
			locateFiles(found)
			all = append(all, found...)
			continue
		}
		doc, err := document.Read(stdin, name)
		if err != nil {
			return err
		}
		for _, f := range rules.schema(name, doc) {
			f.File = name
			all = append(all, f.in(doc))
		}
	}
	if err := reportFindings(p, format, all); err != nil {
		return err
	}
	refused := len(slices.DeleteFunc(all, func(f finding) bool { return f.Warning }))
	if refused > 0 {
		return countError{refused, len(files)}
	}
	return nil
}
