package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/acceptor/accept"
)

// maxDocument bounds what is read of one file: an envelope with the largest asset
// that is taken, and more than any schema may be.
const maxDocument = accept.DefaultMaxMediaBytes + 4<<20

func schemaCommand(s *session.Session) *cobra.Command {
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
				return fmt.Errorf("%w: --level %q: want always or strict", errUsage, level)
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

// finding is a line of the report.
type finding struct {
	File    string   `json:"file"`
	Path    string   `json:"path"`
	Rule    string   `json:"rule"`
	Vendors []string `json:"vendors,omitempty"`
	// Warning marks what nobody refuses.
	Warning bool   `json:"warning,omitempty"`
	Message string `json:"message"`
}

// reportFindings writes the findings: a line each for people, and for tools that jump to
// where the line says.
func reportFindings(p *render.Printer, all []finding) error {
	if !p.Format.ForPeople() || p.Query != nil {
		doc, err := render.Encode(append([]finding{}, all...))
		if err != nil {
			return err
		}
		return render.Rows(p, doc, all, func(f finding) []byte { return strictjson.RenderPlain(f) }, func(f finding) string { return f.File }, nil)
	}
	for _, f := range all {
		vendors := ""
		if len(f.Vendors) > 0 {
			vendors = " [" + strings.Join(f.Vendors, ", ") + "]"
		}
		kind := ""
		if f.Warning {
			kind = "warning: "
		}
		if _, err := fmt.Fprintf(p.Out, "%s: %s: %s%s%s: %s\n", f.File, shownPath(f.Path), kind, f.Rule, vendors, f.Message); err != nil {
			return err
		}
	}
	return nil
}

// shownPath is a JSON pointer for people, for whom the empty one is nothing.
func shownPath(pointer string) string {
	if pointer == "" {
		return "(root)"
	}
	return pointer
}

// lintSchemas reports the findings of all files, then fails if there were any.
func lintSchemas(stdin io.Reader, p *render.Printer, files []string, rules lint) error {
	var all []finding
	for _, name := range files {
		if isPack(name) {
			found, err := lintPack(name, rules)
			if err != nil {
				return err
			}
			all = append(all, found...)
			continue
		}
		doc, err := readDocument(stdin, name)
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

// readDocument reads a file, or standard input for "-".
func readDocument(stdin io.Reader, name string) ([]byte, error) {
	from := stdin
	if name != "-" {
		f, err := os.Open(name) //nolint:gosec // G304: the user names the file
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUsage, err)
		}
		defer func() { _ = f.Close() }()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, fmt.Errorf("%w: %s is a folder without a %s; name files, or the folder of one pack", errUsage, name, pack.File)
		}
		from = f
	}
	doc, err := io.ReadAll(io.LimitReader(from, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("%w: read %s: %w", errUsage, name, err)
	}
	if len(doc) > maxDocument {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", errUsage, name, maxDocument)
	}
	return doc, nil
}

// errFindings ends a command that has found something wrong and said it.
var errFindings = errors.New("findings")
