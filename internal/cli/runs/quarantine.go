package runs

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/show"
	"waybill.dev/waybill/internal/cli/term"
)

func quarantineCommand(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:   "quarantine",
		Short: "List, retry or end runs that cannot be loaded or continued",
		Long: `Lists, retries or ends quarantined runs. A dispatcher quarantines a run that it cannot load
or continue, and checks it again from time to time. The reasons:

  log_damaged         the run's log does not match its checksums
  definition_missing  the workflow definition is gone
  engine_version      the run needs a newer engine
  panic               the run's execution panics
  cannot_continue     another error; the dispatcher's log has it`,
		Example: `  waybill run quarantine list
  waybill run quarantine retry RUN
  waybill run quarantine end RUN --reason 'definition lost'`,
	}
	c.AddCommand(quarantineListCommand(s), quarantineRetryCommand(s), quarantineEndCommand(s))
	return c
}

func quarantineListCommand(s *session.Session) *cobra.Command {
	var limit int
	var cursor string
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List quarantined runs",
		Example: `  waybill run quarantine list -o json`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > 200 {
				return exit.Usagef("--limit %d: must be 1 to 200", limit)
			}
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			c, err := s.Client(cmd)
			if err != nil {
				return err
			}
			page, err := c.Quarantined(cmd.Context(), limit, cursor)
			if err != nil {
				return err
			}
			err = render.Rows(p, page.Doc, page.Runs, func(r client.QuarantinedRun) []byte { return r.Doc },
				func(r client.QuarantinedRun) string { return r.RunID }, quarantineColumns(s.Now()))
			switch {
			case err != nil || !p.Format.ForPeople():
			case page.NextCursor != "":
				session.Notice(cmd, "more runs: use --cursor %s", page.NextCursor)
			case len(page.Runs) == 0:
				session.Notice(cmd, "no quarantined runs")
			}
			return err
		},
	}
	c.Flags().IntVar(&limit, "limit", 50, "runs per page, 1 to 200")
	c.Flags().StringVar(&cursor, "cursor", "", "cursor of the previous page")
	return c
}

func quarantineColumns(now time.Time) []render.Column[client.QuarantinedRun] {
	return []render.Column[client.QuarantinedRun]{
		{Name: "RUN", Value: func(r client.QuarantinedRun) string { return r.RunID }},
		{Name: "REASON", Value: func(r client.QuarantinedRun) string { return r.Reason }},
		{Name: "WORKFLOW", Flex: true, Value: func(r client.QuarantinedRun) string { return r.WorkflowID }},
		{Name: "AGE", Value: func(r client.QuarantinedRun) string {
			if r.Since == "" {
				return ""
			}
			return show.Age(r.Since, now)
		}},
		{Name: "TRIES", Value: func(r client.QuarantinedRun) string { return strconv.Itoa(r.Tries) }},
		{Name: "NEXT-CHECK", Value: func(r client.QuarantinedRun) string { return r.NextCheckAt }},
		{Name: "CHECKS", Wide: true, Value: func(r client.QuarantinedRun) string { return strconv.Itoa(r.Checks) }},
		{Name: "SINCE", Wide: true, Value: func(r client.QuarantinedRun) string { return r.Since }},
	}
}

func quarantineRetryCommand(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "retry RUN",
		Short: "Put a quarantined run back into the queue",
		Long: `Puts a quarantined run back into the queue. If it still cannot be loaded, it stays quarantined
and the error has the reason.`,
		Example:           `  waybill run quarantine retry RUN`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeQuarantined(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := about(cmd, s, args[0])
			if err != nil {
				return err
			}
			a, err := o.client.RetryQuarantined(cmd.Context(), o.id)
			if err != nil {
				return err
			}
			var v struct {
				RunID   string `json:"runId"`
				Outcome string `json:"outcome"`
			}
			if err := json.Unmarshal(a.Body, &v); err != nil {
				return err
			}
			return o.print.Document(a.Body, v.RunID, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s %s\n", term.Clean(v.RunID), term.Clean(v.Outcome))
				return err
			})
		},
	}
}

func quarantineEndCommand(s *session.Session) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "end RUN",
		Short: "End a quarantined run as cancelled",
		Long: `Ends a quarantined run as cancelled, also if its definition is missing or its execution
panics. A run with a damaged log cannot be ended.`,
		Example:           `  waybill run quarantine end RUN --reason 'definition lost'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeQuarantined(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := about(cmd, s, args[0])
			if err != nil {
				return err
			}
			a, err := o.client.EndQuarantined(cmd.Context(), o.id, reason)
			return o.done(a, err)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "reason, recorded with the event")
	return c
}

// completeQuarantined offers quarantined runs for the first argument.
func completeQuarantined(s *session.Session) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var out []string
		if c, err := s.Client(cmd); err == nil && len(args) == 0 {
			if page, err := c.Quarantined(cmd.Context(), 50, ""); err == nil {
				for _, r := range page.Runs {
					out = append(out, r.RunID+"\t"+r.Reason+" "+r.WorkflowID)
				}
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
