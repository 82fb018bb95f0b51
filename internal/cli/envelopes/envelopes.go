// Package envelopes has the commands that explain, validate and submit envelopes.
package envelopes

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/ladder"
	"waybill.dev/waybill/internal/cli/runs"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/protocol/suggest"
	"waybill.dev/waybill/protocol/view"
)

// Explain is `waybill envelope explain`.
func Explain(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain RUN [ENVELOPE]",
		Short: "Show which gates a model's answers passed, and which gate rejected them",
		Long: `Shows how the answers of a run passed the gates: shape, kind, payload, contract, limits,
redaction, dedup, routing. For a rejection it prints the error code, the place, the accepted values
and who can fix it. The host folds them from the run's events.

ENVELOPE is an envelope id, a correlation id, the id or sequence of an event that recorded the
envelope, a node, or a key printed by this command. Without it, shows all answers of the run.

` + exit.Help,
		Example: `  waybill envelope explain @latest
  waybill envelope explain RUN classify
  waybill envelope explain RUN env_a0694fd936807a8b433d28e7 -o json`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: complete(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			id, all, err := read(cmd, s, args[0])
			if err != nil {
				return err
			}
			if len(args) == 2 {
				if all, err = found(all, args[1]); err != nil {
					return err
				}
			}
			if len(all) == 0 && p.Format.ForPeople() {
				session.Notice(cmd, "no model calls in this run")
			}
			return p.Value(map[string]any{"runId": id, "executions": all}, id, func(w io.Writer) error {
				return ladder.Write(w, all, p.Color)
			})
		},
	}
	s.Flags(c)
	return c
}

// read returns the id and the model executions of a run so far.
func read(cmd *cobra.Command, s *session.Session, name string) (string, []*view.Execution, error) {
	c, err := s.Client(cmd)
	if err != nil {
		return "", nil, err
	}
	id, err := runs.Named(cmd.Context(), c, name)
	if err != nil {
		return id, nil, err
	}
	v, err := c.View(cmd.Context(), id)
	if err != nil {
		return id, nil, err
	}
	return id, v.Answers, nil
}

func found(all []*view.Execution, name string) ([]*view.Execution, error) {
	out := ladder.Find(all, name)
	if len(out) > 0 {
		return out, nil
	}
	names := ladder.Names(all)
	hint := suggest.Names(name, names, 3)
	if len(hint) == 0 {
		hint = names[:min(len(names), 5)]
	}
	return nil, exit.With(exit.NotFound, fmt.Errorf("no answer %q in the run; known: %s", name, strings.Join(hint, ", ")))
}

func complete(s *session.Session) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, to string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return runs.CompleteIDs(s)(cmd, args, to)
		}
		_, all, err := read(cmd, s, args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return ladder.Names(all), cobra.ShellCompDirectiveNoFileComp
	}
}
