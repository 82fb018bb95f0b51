package runs

import (
	"errors"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
)

// archiveBatch is how many runs are archived in one request, so that a slow bucket does not exceed the
// time of a request.
const archiveBatch = 20

func archiveCommand(s *session.Session) *cobra.Command {
	var q client.RunQuery
	var dryRun bool
	c := &cobra.Command{
		Use:   "archive RUN... | --filter WORDS",
		Short: "Write runs to the archive of the host",
		Long: `Writes runs that have ended to the archive of the host, a directory or bucket that its operator sets
with --archive. A run is written once, however often it is archived. The runs stay on the host. Runs
selected with --filter, --status, --workflow or --tag are those that have ended. Needs the scope
runs:archive.

run export --to writes archives to a directory or bucket of your own.

Prints the outcome of each run. Exit status 6 if one could not be archived, for example because it has
not ended.`,
		Example: `  waybill run archive RUN
  waybill run archive --filter 'workflow:triage status:failed' --dry-run`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return newest(cmd, s, args), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if (q != (client.RunQuery{})) == (len(args) > 0) {
				return exit.Usagef("want run ids or --filter, not both")
			}
			return archiveAll(cmd, s, args, q, dryRun)
		},
	}
	queryFlags(c, &q)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only list the runs")
	return c
}

func archiveAll(cmd *cobra.Command, s *session.Session, names []string, q client.RunQuery, dryRun bool) error {
	p, err := s.Printer(cmd)
	if err != nil {
		return err
	}
	c, err := s.Client(cmd)
	if err != nil {
		return err
	}
	ids, err := selectRuns(cmd, c, names, q, true)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		session.Notice(cmd, "no matching ended runs")
	}
	if dryRun {
		return printOutcomes(p, named(ids, "would be archived"))
	}
	var all []outcomeOf
	var failed error
	for len(ids) > 0 {
		n := min(archiveBatch, len(ids))
		got, err := c.Archive(cmd.Context(), client.Archiving{RunIDs: ids[:n]})
		if err != nil { // the runs of earlier requests are archived
			if len(all) > 0 {
				err = errors.Join(err, printOutcomes(p, all))
			}
			return err
		}
		part := named(ids[:n], "archived")
		for _, refused := range got.Refused {
			failed = exit.Outcome(exit.Refused, "a run could not be archived")
			for i := range part {
				if part[i].RunID == refused.RunID {
					doc, _ := render.Encode(map[string]string{"error": refused.Error, "message": refused.Message}) // strings
					part[i].OK, part[i].Status, part[i].Error = false, "", doc
				}
			}
		}
		all, ids = append(all, part...), ids[n:]
	}
	if err := printOutcomes(p, all); err != nil {
		return err
	}
	return failed
}
