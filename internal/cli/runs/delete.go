package runs

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
)

// deleteFlags are the flags of `run delete`.
type deleteFlags struct {
	query       client.RunQuery
	dryRun, yes bool
}

func deleteCommand(s *session.Session) *cobra.Command {
	var o deleteFlags
	c := &cobra.Command{
		Use:     "delete RUN... | --filter WORDS",
		Aliases: []string{"rm"},
		Short:   "Erase runs and everything that belongs to them",
		Long: `Erases runs that have ended, with everything that belongs to them: events, assets, annotations and
pending webhooks. This cannot be undone. Children and forks of a run are runs of their own and stay.
Runs selected with --filter, --status, --workflow or --tag are those that have ended.

Needs a key with the scope runs:delete, and confirmation or --yes. --dry-run only lists the runs.

Prints the outcome of each run. Exit status 6 if one could not be erased, for example because it has
not ended: cancel it first.`,
		Example: `  waybill run delete RUN --yes
  waybill run delete --filter 'workflow:triage status:failed' --dry-run`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return newest(cmd, s, args), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if (o.query != (client.RunQuery{})) == (len(args) > 0) {
				return exit.Usagef("want run ids or --filter, not both")
			}
			return deleteAll(cmd, s, args, o)
		},
	}
	queryFlags(c, &o.query)
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "only list the runs")
	c.Flags().BoolVar(&o.yes, "yes", false, "skip the confirmation")
	return c
}

func deleteAll(cmd *cobra.Command, s *session.Session, names []string, o deleteFlags) error {
	p, err := s.Printer(cmd)
	if err != nil {
		return err
	}
	c, err := s.Client(cmd)
	if err != nil {
		return err
	}
	ids, err := selectRuns(cmd, c, names, o.query, true)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		session.Notice(cmd, "no matching ended runs")
	}
	if o.dryRun {
		return printOutcomes(p, named(ids, "would be erased"))
	}
	if !o.yes && len(ids) > 0 {
		if err := confirm(cmd, fmt.Sprintf("erase %d run(s) for good", len(ids))); err != nil {
			return err
		}
	}
	var (
		all    []outcomeOf
		failed error
	)
	for _, id := range ids {
		_, err := c.Delete(cmd.Context(), id)
		refused, isRefused := errors.AsType[*client.Error](err)
		if err != nil && (len(ids) == 1 || !isRefused) {
			return err
		}
		r := outcomeOf{RunID: id, OK: err == nil, Status: "erased"}
		if err != nil {
			r.Status, r.Error = "", refusal(refused)
			failed = exit.Outcome(exit.Refused, "a run could not be erased")
		}
		all = append(all, r)
	}
	return errors.Join(printOutcomes(p, all), failed)
}

// refusal returns an error of the host as the host's lists of outcomes have it.
func refusal(e *client.Error) json.RawMessage {
	doc, err := render.Encode(map[string]string{"error": string(e.Fault.Code), "message": e.Fault.Message})
	if err != nil {
		return nil
	}
	return doc
}
