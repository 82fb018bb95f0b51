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

// Workflow is `waybill workflow lint`.
func Workflow(s *session.Session) *cobra.Command {
	limits := runlimits.Default()
	var rewrites bool
	c := &cobra.Command{
		Use:     "lint FILE|-...",
		Aliases: []string{"validate"},
		Short:   "Check workflow definitions as a host does",
		Long: `Checks workflow definitions as a host does when they are registered: their shape, their
references, and that every condition and expression compiles. Each finding has the place, the rule
and the expected value. Warnings are about definitions that a host accepts and that are likely
mistakes, such as an unreachable node. - is standard input. Settings of node types from packs are
not checked. Set the limits of your host if they are not the defaults. --rewrites also lists, as
warnings, all rules of output schemas that vendors get in another form.

Exit status: 0 no findings, or warnings only; 1 a host would reject a definition; 2 usage, or an
unreadable file.`,
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
			return lintWorkflows(cmd.InOrStdin(), p, node.Limits(limits), rewrites, files)
		},
	}
	hostflags.RunLimits(c.Flags(), &limits)
	c.Flags().BoolVar(&rewrites, "rewrites", false, "also list what is sent to vendors in another form")
	s.FormatFlags(c.Flags())
	return c
}

// lintWorkflows reports the findings in all files, and fails if a host would reject a definition.
func lintWorkflows(stdin io.Reader, p *render.Printer, limits node.Limits, rewrites bool, files []string) error {
	var all []finding
	refused := 0
	for _, name := range files {
		doc, err := document.Read(stdin, name)
		if err != nil {
			return err
		}
		found, warned := reviewWorkflow(doc, limits, rewrites)
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

// reviewWorkflow returns the errors and the warnings of a definition.
func reviewWorkflow(doc []byte, limits node.Limits, rewrites bool) (found, warned []workflow.Problem) {
	def, found := workflow.Parse(doc)
	if len(found) > 0 {
		return found, nil
	}
	found, warned = node.Builtin().Review(def, nil)
	if rewrites {
		warned = append(warned, node.Builtin().Rewrites(def, nil)...)
	}
	beyond, void := limits.Review(def)
	return append(found, beyond...), append(warned, void...)
}
