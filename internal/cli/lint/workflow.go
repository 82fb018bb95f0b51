package lint

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/document"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/hostflags"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/host/runlimits"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Workflow checks workflow definitions.
func Workflow(s *session.Session) *cobra.Command {
	limits := runlimits.Default()
	c := &cobra.Command{
		Use:     "lint FILE|-...",
		Aliases: []string{"validate"},
		Short:   "Say what a host would refuse in definitions, and what it would warn of",
		Long: `Checks workflow definitions as a host does when they are registered: their shape, their
references, and that every condition and expression compiles. It says for each finding
where it is, which rule it breaks and what would be right. A file named - is standard
input. What a host takes all the same and is hardly meant, such as a node that no run
gets to, is a warning. Types that only packs bring are not looked into. Give the limits
of your host if they are not the defaults.

Exits with 0 if nothing but warnings were found, 1 if a host would refuse a definition,
2 if a file cannot be read.`,
		Example: `  waybill workflow lint workflows/*.json
  waybill workflow lint -o json - < workflow.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			if err := errors.Join(limits.Validate()...); err != nil {
				return fmt.Errorf("%w: %w", exit.ErrUsage, err)
			}
			return lintWorkflows(cmd.InOrStdin(), p, node.Limits(limits), files)
		},
	}
	hostflags.RunLimits(c.Flags(), &limits)
	s.FormatFlags(c.Flags())
	return c
}

// lintWorkflows reports what is found in all files, then fails if a host would refuse
// any of them.
func lintWorkflows(stdin io.Reader, p *render.Printer, limits node.Limits, files []string) error {
	var all []finding
	refused := 0
	for _, name := range files {
		doc, err := document.Read(stdin, name)
		if err != nil {
			return err
		}
		found, warned := reviewWorkflow(doc, limits)
		refused += len(found)
		for _, f := range found {
			all = append(all, finding{File: name, Path: f.Path, Rule: f.Rule, Message: f.Message})
		}
		for _, f := range warned {
			all = append(all, finding{File: name, Path: f.Path, Rule: f.Rule, Warning: true, Message: f.Message})
		}
	}
	if err := reportFindings(p, all); err != nil {
		return err
	}
	if refused > 0 {
		return fmt.Errorf("%d %w in %d file(s)", refused, errFindings, len(files))
	}
	return nil
}

// reviewWorkflow finds what a host refuses, and what it warns of.
func reviewWorkflow(doc []byte, limits node.Limits) (found, warned []workflow.Problem) {
	def, found := workflow.Parse(doc)
	if len(found) > 0 {
		return found, nil
	}
	found, warned = node.Builtin().Review(def, nil)
	beyond, void := limits.Review(def)
	return append(found, beyond...), append(warned, void...)
}
