// Package envelopes holds the command that explains what became of a model's answers.
package envelopes

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/ladder"
	"waybill.dev/waybill/internal/cli/runs"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/suggest"
	"waybill.dev/waybill/protocol/wire"
)

// Explain is `waybill envelope explain`.
func Explain(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain RUN [ENVELOPE]",
		Short: "Say which gates a model's answers passed, and which one stopped them",
		Long: `Draws the ladder of a run's answers: shape, kind, payload, contract, limits, redaction,
dedup, routing. For the gate that refused it says the code, the place and what would be
accepted; and who can do something about it. It reads nothing but the run's events.

ENVELOPE is the id of an envelope, its correlation id, the id or the sequence of an event
that recorded it, a node, or a key that this command prints. Without it, all answers of the
run are drawn.

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
				session.Talk(cmd, "no model was asked in this run")
			}
			return p.Value(map[string]any{"runId": id, "executions": explained(all)}, id, func(w io.Writer) error {
				return ladder.Write(w, all, p.Color)
			})
		},
	}
	s.Flags(c)
	return c
}

// explanation is an execution, and its story.
type explanation struct {
	ladder.Story
	*ladder.Execution
}

func explained(all []*ladder.Execution) []explanation {
	out := make([]explanation, len(all))
	for i, x := range all {
		out[i] = explanation{x.Story(), x}
	}
	return out
}

// read gives the ladder of a run so far.
func read(cmd *cobra.Command, s *session.Session, name string) (string, []*ladder.Execution, error) {
	c, err := s.Client(cmd)
	if err != nil {
		return "", nil, err
	}
	id, err := runs.Named(cmd.Context(), c, name)
	if err != nil {
		return id, nil, err
	}
	var events []wire.Event
	_, err = runs.Each(cmd.Context(), c, id, 0, func(e client.Event) bool {
		events = append(events, e.Event)
		return true
	})
	return id, ladder.Read(events), err
}

func found(all []*ladder.Execution, name string) ([]*ladder.Execution, error) {
	out := ladder.Find(all, name)
	if len(out) > 0 {
		return out, nil
	}
	names := ladder.Names(all)
	hint := suggest.Names(name, names, 3)
	if len(hint) == 0 {
		hint = names[:min(len(names), 5)]
	}
	return nil, exit.With(exit.NotFound, fmt.Errorf("no answer of the run is called %q; there are %s", name, strings.Join(hint, ", ")))
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
