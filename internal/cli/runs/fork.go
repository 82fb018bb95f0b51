package runs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/show"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/protocol/wire"
)

func forkCommand(s *session.Session) *cobra.Command {
	var mode, configurable, metadata, key string
	var tags []string
	var from int
	var wait bool
	c := &cobra.Command{
		Use:   "fork RUN",
		Short: "Fork a run: repeat it from one of its events as a new run",
		Long: `Creates a new run with the events of another run before --from, and executes the rest. The other
run is not changed.

--mode replay returns the recorded outcome of each model call and other effect; it makes no external
calls and takes no options. --mode branch executes effects again, including webhooks and other side
effects, and takes new options. The default mode is branch with --from, replay without.`,
		Example: `  waybill run fork RUN --from 12 --configurable '{"ai.model":"claude-opus-5-5"}'
  waybill run fork RUN --mode replay --wait && waybill run diff RUN @latest`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: CompleteIDs(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			f := client.Fork{Mode: mode, Key: key}
			if cmd.Flags().Changed("from") {
				f.FromSeq = &from
			}
			if f.Mode == "" {
				f.Mode = "replay"
				if f.FromSeq != nil {
					f.Mode = "branch"
				}
			}
			var err error
			over := client.Overlay{Tags: tags}
			if over.Configurable, err = object(cmd.InOrStdin(), "--configurable", configurable); err != nil {
				return err
			}
			if over.Metadata, err = object(cmd.InOrStdin(), "--metadata", metadata); err != nil {
				return err
			}
			if over.Configurable != nil || over.Metadata != nil || len(tags) > 0 {
				f.Overlay = &over
			}
			return fork(cmd, s, args[0], f, wait)
		},
	}
	f := c.Flags()
	f.StringVar(&mode, "mode", "", "replay or branch")
	f.IntVar(&from, "from", 0, "sequence of the first event to repeat")
	f.StringVar(&configurable, "configurable", "", "options of a branch, merged into those of the run: JSON object or @FILE")
	f.StringVar(&metadata, "metadata", "", "metadata of a branch: JSON object or @FILE")
	f.StringArrayVar(&tags, "tag", nil, "tag of a branch (repeatable)")
	f.StringVar(&key, "key", "", "Idempotency-Key; repeats with the same key create one fork")
	f.BoolVar(&wait, "wait", false, "wait until the fork ends or waits for an answer")
	return c
}

func fork(cmd *cobra.Command, s *session.Session, id string, f client.Fork, wait bool) error {
	o, err := about(cmd, s, id)
	if err != nil {
		return err
	}
	made, err := o.client.Fork(cmd.Context(), o.id, f)
	if err != nil {
		return err
	}
	if f.Mode == "branch" {
		session.Notice(cmd, "branch: effects from event %d on are executed again", made.FromSeq)
	} else {
		session.Notice(cmd, "replay: effects return their recorded outcomes; external calls are disabled")
	}
	link(cmd, o.client, made.RunID)
	if wait {
		o.id = made.RunID
		return o.wait(cmd, s, true)
	}
	return o.printStarted(made)
}

func diffCommand(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "diff RUN RUN",
		Short: "Compare two runs",
		Long: `Compares the events and the outcome of two runs. Values that differ between any two runs, such
as ids and times, are ignored.

Exit status: 0 no differences; 1 differences.`,
		Example: `  waybill run diff RUN @latest
  waybill run diff A B -o json | jq .divergedAtSeq`,
		Args: cobra.ExactArgs(2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 1 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return newest(cmd, s, args), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := about(cmd, s, args[0])
			if err != nil {
				return err
			}
			other, err := Named(cmd.Context(), o.client, args[1])
			if err != nil {
				return err
			}
			d, err := o.client.Diff(cmd.Context(), o.id, other)
			if err != nil {
				return err
			}
			if err := o.diff(d); err != nil {
				return err
			}
			if d.DivergedAtSeq != nil || len(d.EventDiffs) > 0 || len(d.StateDiff) > 0 {
				return exit.Outcome(exit.Failed, "the runs differ")
			}
			return nil
		},
	}
}

// diff prints the differences of two runs.
func (o *one) diff(d *client.Diff) error {
	if !o.print.Format.ForPeople() || o.print.Query != nil {
		return o.print.Document(d.Doc, o.id, nil)
	}
	w := o.print.Out
	if d.DivergedAtSeq == nil && len(d.EventDiffs)+len(d.StateDiff) == 0 {
		_, err := fmt.Fprintln(w, "no differences")
		return err
	}
	if d.DivergedAtSeq != nil {
		if _, err := fmt.Fprintf(w, "first divergence at event %d\n\n", *d.DivergedAtSeq); err != nil {
			return err
		}
	}
	side := func(e *wire.Event) string {
		if e == nil {
			return ""
		}
		return fmt.Sprintf("%s %s %s", e.Type, e.NodeID, show.Detail(*e))
	}
	table := *o.print
	table.Columns = nil
	err := render.Rows(&table, nil, d.EventDiffs, nil, nil, []render.Column[client.EventDiff]{
		{Name: "SEQ", Value: func(e client.EventDiff) string { return strconv.Itoa(e.Seq) }},
		{Name: "OP", Value: func(e client.EventDiff) string { return e.Op }},
		{Name: "A", Flex: true, Value: func(e client.EventDiff) string { return render.Cut(side(e.AEvent), 60) }},
		{Name: "B", Flex: true, Value: func(e client.EventDiff) string { return render.Cut(side(e.BEvent), 60) }},
	})
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(d.StateDiff)) {
		v := d.StateDiff[path]
		if _, err := fmt.Fprintf(w, "state %s: %s -> %s\n", term.Clean(path), term.Clean(string(v.A)), term.Clean(string(v.B))); err != nil {
			return err
		}
	}
	if d.Truncated {
		_, err = fmt.Fprintln(w, "(more differences not shown)")
	}
	return err
}
