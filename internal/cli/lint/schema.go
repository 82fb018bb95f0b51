// Package lint has the commands that check schemas, packs and workflow definitions without a host.
package lint

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/document"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/protocol/schema"
)

// Schema is the group of commands about JSON Schemas.
func Schema(s *session.Session) *cobra.Command {
	c := &cobra.Command{Use: "schema", Short: "Look at JSON Schemas of envelope payloads"}
	c.AddCommand(schemaLintCommand(s))
	return c
}

func schemaLintCommand(s *session.Session) *cobra.Command {
	var level, vendor string
	c := &cobra.Command{
		Use:   "lint FILE|PACK...",
		Short: "Say where payload schemas leave the subset that models can be held to",
		Long: `Checks payload schemas against the structured-output subset of OpenWOP (Tier 1), and
says for each finding where it is, which rule it breaks, whose models it concerns,
and what to write instead. A file named - is standard input. A folder with a pack.json
is a pack: its manifest is checked, and the schema of each kind that it brings.

--level always holds for every envelope kind: no oneOf and its relatives, depth, a
discriminator for each variant. --level strict adds what the vendors' strict modes
demand: closed objects, every property required, no constraints.

What a strict mode demands the host says for itself: it asks a model for a projection
of the schema. Where a vendor cannot be asked, because the schema is too deep for it or
says what it has no words for, the finding names the vendor; --vendor looks at one only.

Exits with 0 if nothing was found, 1 if something was, 2 if a file cannot be read.`,
		Example: `  waybill schema lint kinds/*.schema.json
  waybill schema lint --level strict -o json ticket.schema.json
  waybill schema lint ./packs/acme-notes`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			l, ok := map[string]schema.Level{"always": schema.LevelAlways, "strict": schema.LevelStrict}[level]
			if !ok {
				return fmt.Errorf("%w: --level %q: want always or strict", exit.ErrUsage, level)
			}
			vendors, err := vendorsNamed(vendor)
			if err != nil {
				return err
			}
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			return lintSchemas(cmd.InOrStdin(), p, files, lint{l, vendors})
		},
	}
	c.Flags().StringVar(&level, "level", "always", "always or strict")
	c.Flags().StringVar(&vendor, "vendor", allVendors, "whose strict mode the schemas are projected for: openai, anthropic, gemini or all")
	s.FormatFlags(c.Flags())
	return c
}

// lintSchemas reports the findings of all files, then fails if there were any.
func lintSchemas(stdin io.Reader, p *render.Printer, files []string, rules lint) error {
	var all []finding
	for _, name := range files {
		if packs.IsPack(name) {
			found, err := lintPack(name, rules)
			if err != nil {
				return err
			}
			all = append(all, found...)
			continue
		}
		doc, err := document.Read(stdin, name)
		if err != nil {
			return err
		}
		for _, f := range rules.schema(name, doc) {
			f.File = name
			all = append(all, f)
		}
	}
	if err := reportFindings(p, all); err != nil {
		return err
	}
	if len(all) > 0 {
		return fmt.Errorf("%d %w in %d file(s)", len(all), errFindings, len(files))
	}
	return nil
}
