package workflowlist

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/protocol/workflow"
)

// Diff is `waybill workflow diff`.
func Diff(s *session.Session) *cobra.Command {
	var from, to string
	c := &cobra.Command{
		Use:   "diff WORKFLOW [FILE|-]",
		Short: "Compare versions of a workflow, or a version with a file",
		Long: `Compares two versions of a workflow (--from, --to; the default of --to is the current one), or the
current version with a file. Order and white space do not count: nodes, edges and variables are
compared by their id or name.

Exit status: 0 equal, 1 different; otherwise as all commands.`,
		Example: `  waybill workflow diff triage --from 1.0.0
  waybill workflow diff triage triage.json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			if len(args) == 1 && from == "" {
				return exit.Usagef("want --from VERSION, or a file to compare with")
			}
			if len(args) == 2 && to != "" {
				return exit.Usagef("--to and a file cannot be combined")
			}
			before, after, err := documents(s, cmd, args, from, to)
			if err != nil {
				return err
			}
			all := workflow.Compare(before, after)
			if err := report(p, all); err != nil {
				return err
			}
			if len(all) > 0 {
				return exit.With(exit.Failed, fmt.Errorf("the definitions differ in %d place(s)", len(all)))
			}
			return nil
		},
	}
	c.Flags().StringVar(&from, "from", "", "version to compare; default with a file: the current one")
	c.Flags().StringVar(&to, "to", "", "version to compare with; default: the current one")
	s.Flags(c)
	return c
}

// documents reads both definitions.
func documents(s *session.Session, cmd *cobra.Command, args []string, from, to string) (before, after json.RawMessage, err error) {
	c, err := s.Client(cmd)
	if err != nil {
		return nil, nil, err
	}
	if before, err = c.WorkflowVersion(cmd.Context(), args[0], from); err != nil {
		return nil, nil, err
	}
	if len(args) == 1 {
		after, err = c.WorkflowVersion(cmd.Context(), args[0], to)
		return before, after, err
	}
	if args[1] == "-" {
		after, err = io.ReadAll(cmd.InOrStdin())
	} else {
		after, err = os.ReadFile(args[1])
	}
	if err != nil {
		return nil, nil, exit.With(exit.Usage, err)
	}
	if !json.Valid(after) {
		return nil, nil, exit.Usagef("%s is not JSON", args[1])
	}
	return before, after, nil
}

func report(p *render.Printer, all []workflow.Change) error {
	doc, err := render.Encode(append([]workflow.Change{}, all...))
	if err != nil {
		return err
	}
	return p.Document(doc, strconv.Itoa(len(all)), func(w io.Writer) error {
		for _, c := range all {
			text := map[string]string{
				workflow.Added:    "+ " + c.Path + ": " + short(c.New),
				workflow.Removed:  "- " + c.Path + ": " + short(c.Old),
				workflow.Replaced: "~ " + c.Path + ": " + short(c.Old) + " -> " + short(c.New),
			}[c.Op]
			if _, err := fmt.Fprintln(w, term.Clean(text)); err != nil {
				return err
			}
		}
		return nil
	})
}

// short renders a value on one line.
func short(v json.RawMessage) string {
	const most = 160
	text := string(v)
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "..."
	}
	return text
}
