package runs

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/term"
)

func pauseCommand(s *session.Session) *cobra.Command {
	var reason, drain string
	c := &cobra.Command{
		Use:   "pause RUN",
		Short: "Pause a run; it makes no model calls until it is resumed",
		Long: `Pauses a run. With --drain drain-current-node, the host's default, the running node ends first.
With immediate, the node is stopped and restarted when the run is resumed.`,
		Example:           `  waybill run pause RUN --reason 'wrong price list'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: CompleteIDs(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := about(cmd, s, args[0])
			if err != nil {
				return err
			}
			a, err := o.client.Pause(cmd.Context(), o.id, reason, drain)
			return o.done(a, err)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "reason, recorded with the event")
	c.Flags().StringVar(&drain, "drain", "", "immediate or drain-current-node")
	return c
}

func resumeCommand(s *session.Session) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:               "resume RUN",
		Short:             "Resume a paused run",
		Example:           `  waybill run resume RUN`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: CompleteIDs(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := about(cmd, s, args[0])
			if err != nil {
				return err
			}
			a, err := o.client.Resume(cmd.Context(), o.id, reason)
			return o.done(a, err)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "reason, recorded with the event")
	return c
}

// done prints the response to a change of a run: its id and status.
func (o *one) done(a *client.Answer, err error) error {
	if err != nil {
		return err
	}
	var v struct {
		RunID           string `json:"runId"`
		Status          string `json:"status"`
		AlreadyTerminal bool   `json:"alreadyTerminal"`
	}
	if err := json.Unmarshal(a.Body, &v); err != nil {
		return err
	}
	return o.print.Document(a.Body, v.RunID, func(w io.Writer) error {
		had := ""
		if v.AlreadyTerminal {
			had = " (had ended before)"
		}
		_, err := fmt.Fprintf(w, "%s %s%s\n", term.Clean(v.RunID), v.Status, had)
		return err
	})
}

// cancelFlags are the flags of `run cancel`.
type cancelFlags struct {
	reason      string
	query       client.RunQuery
	dryRun, yes bool
}

func cancelCommand(s *session.Session) *cobra.Command {
	var o cancelFlags
	c := &cobra.Command{
		Use:   "cancel RUN... | --filter WORDS",
		Short: "Cancel runs",
		Long: `Cancels runs. A run that has ended is not changed. Several runs, or those selected with --filter,
--status, --workflow or --tag, are listed first, and cancelled after confirmation or with --yes.
--dry-run only lists them.

With several runs, prints the outcome of each. Exit status 6 if one could not be cancelled.`,
		Example: `  waybill run cancel RUN --reason 'wrong input'
  waybill run cancel --filter 'workflow:triage status:running' --dry-run`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return newest(cmd, s, args), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			byQuery := o.query != (client.RunQuery{})
			if byQuery == (len(args) > 0) {
				return exit.Usagef("want run ids or --filter, not both")
			}
			if len(args) == 1 && !o.dryRun {
				at, err := about(cmd, s, args[0])
				if err != nil {
					return err
				}
				a, err := at.client.Cancel(cmd.Context(), at.id, o.reason)
				return at.done(a, err)
			}
			return cancelAll(cmd, s, args, o)
		},
	}
	queryFlags(c, &o.query)
	f := c.Flags()
	f.StringVar(&o.reason, "reason", "", "reason, recorded with the event")
	f.BoolVar(&o.dryRun, "dry-run", false, "only list the runs")
	f.BoolVar(&o.yes, "yes", false, "skip the confirmation")
	return c
}

// batch is the maximum number of runs in one cancel request (OpenWOP host contract §2.6).
const batch = 100

// outcomeOf is the outcome for one of several runs.
type outcomeOf struct {
	RunID  string          `json:"runId"`
	OK     bool            `json:"ok"`
	Status string          `json:"status"`
	Error  json.RawMessage `json:"error,omitempty"`
}

func cancelAll(cmd *cobra.Command, s *session.Session, ids []string, o cancelFlags) error {
	p, err := s.Printer(cmd)
	if err != nil {
		return err
	}
	c, err := s.Client(cmd)
	if err != nil {
		return err
	}
	if ids, err = selectRuns(cmd, c, ids, o.query, false); err != nil {
		return err
	}
	if len(ids) == 0 {
		session.Notice(cmd, "no matching open runs")
	}
	if o.dryRun {
		return printOutcomes(p, named(ids, "would be cancelled"))
	}
	if !o.yes && len(ids) > 0 {
		if err := confirm(cmd, fmt.Sprintf("cancel %d run(s)", len(ids))); err != nil {
			return err
		}
	}
	var all []outcomeOf
	for len(ids) > 0 {
		n := min(batch, len(ids))
		a, err := c.CancelAll(cmd.Context(), ids[:n], o.reason)
		if err != nil {
			return err
		}
		var got struct {
			Results []outcomeOf `json:"results"`
		}
		if err := json.Unmarshal(a.Body, &got); err != nil {
			return err
		}
		all, ids = append(all, got.Results...), ids[n:]
	}
	if err := printOutcomes(p, all); err != nil {
		return err
	}
	for _, r := range all {
		if !r.OK {
			return exit.Outcome(exit.Refused, "a run could not be cancelled")
		}
	}
	return nil
}

// selectRuns returns the ids of runs that are named, or else those that a query selects: ended ones,
// or the others.
func selectRuns(cmd *cobra.Command, c *client.Client, names []string, q client.RunQuery, ended bool) (ids []string, err error) {
	if len(names) == 0 {
		page, err := pages(cmd, c, q, true)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Runs {
			if r.Status.Terminal() == ended && fitsQuery(r, q) {
				ids = append(ids, r.RunID)
			}
		}
		return ids, nil
	}
	for _, name := range names {
		id, err := Named(cmd.Context(), c, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// fitsQuery checks the host's selection again, because what is done to runs cannot be undone.
func fitsQuery(r client.RunSummary, q client.RunQuery) bool {
	return (q.Status == "" || q.Status == string(r.Status)) && (q.WorkflowID == "" || q.WorkflowID == r.WorkflowID) &&
		(q.Tag == "" || slices.Contains(r.Tags, q.Tag))
}

func named(ids []string, status string) []outcomeOf {
	out := make([]outcomeOf, len(ids))
	for i, id := range ids {
		out[i] = outcomeOf{RunID: id, OK: true, Status: status}
	}
	return out
}

func printOutcomes(p *render.Printer, all []outcomeOf) error {
	doc, err := render.Encode(map[string]any{"results": append([]outcomeOf{}, all...)})
	if err != nil {
		return err
	}
	row := func(r outcomeOf) []byte {
		b, err := render.Encode(r)
		if err != nil {
			return nil
		}
		return b
	}
	return render.Rows(p, doc, all, row, func(r outcomeOf) string { return r.RunID }, []render.Column[outcomeOf]{
		{Name: "RUN", Value: func(r outcomeOf) string { return r.RunID }},
		{Name: "STATUS", Value: func(r outcomeOf) string { return r.Status }},
		{Name: "ERROR", Flex: true, Value: func(r outcomeOf) string {
			var e struct{ Error, Message string }
			_ = json.Unmarshal(r.Error, &e) // empty on success
			return strings.Trim(e.Error+": "+e.Message, ": ")
		}},
	})
}

// confirm prompts for confirmation on a terminal. Without one, --yes is required.
func confirm(cmd *cobra.Command, what string) error {
	if !term.IsTTY(cmd.InOrStdin()) || !term.IsTTY(cmd.ErrOrStderr()) {
		return exit.Usagef("this would %s; confirm with --yes, or list them with --dry-run", what)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s? Type yes to confirm: ", what)
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != "yes" {
		return exit.Usagef("not confirmed; no run was changed")
	}
	return nil
}
