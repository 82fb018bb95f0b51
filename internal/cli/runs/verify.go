package runs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/verdict"
	"waybill.dev/waybill/internal/runcheck"
)

func verifyCommand(s *session.Session) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "verify RUN | -f FILE",
		Short: "Check the events of a run against the rules of the protocol",
		Long: `Reads the events and the snapshot of a run over the API, and checks them against the rules of the
protocol. Sequences have no gaps, the run starts and ends once, each event is valid at its place,
each envelope is recorded once, and the snapshot equals the fold of the events. A finding is a bug
of the host, or a damaged file.

-f checks a file instead: a debug bundle, an archive with its chain of hashes, or events written by run export --what events or run
events -o json; - is standard input. Checks without data in the file are skipped. The hash chain of
the host's log is not in the API; check it with waybill log verify.

Exit status: 0 no findings; 1 findings.`,
		Example: `  waybill run verify @latest
  waybill run verify RUN -o json | jq '.checks[] | select(.status == "fail")'
  waybill run export RUN | waybill run verify -f -`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: CompleteIDs(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 0) == (file == "") {
				return exit.Usagef("want a run id or --file")
			}
			if file != "" {
				p, err := s.Printer(cmd)
				if err != nil {
					return err
				}
				k, err := checkFile(cmd.InOrStdin(), file)
				if err != nil {
					return err
				}
				return verified(p, k)
			}
			o, err := about(cmd, s, args[0])
			if err != nil {
				return err
			}
			verify := Verify
			if session.ReadsArchives(o.client) {
				verify = verifyArchived
			}
			k, err := verify(cmd.Context(), o.client, o.id)
			if err != nil {
				return err
			}
			return verified(o.print, k)
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "file to check instead of a run: debug bundle or events; - is standard input")
	return c
}

// stillTries is how often an open run is read until its snapshot and its events have the same
// position.
const stillTries = 5

// Verify reads a run from its host and checks it.
func Verify(ctx context.Context, c *client.Client, id string) (*runcheck.Check, error) {
	k := runcheck.New(runcheck.Source{})
	add := func(e client.Event) bool {
		k.Add(e.Event)
		return true
	}
	if _, err := Each(ctx, c, id, 0, add); err != nil {
		return nil, err
	}
	for range stillTries {
		r, err := c.Run(ctx, id)
		if err != nil {
			return nil, err
		}
		seen := k.Events()
		if !r.Status.Terminal() || !k.Status().Terminal() { // the run may have advanced between the reads
			if _, err := Each(ctx, c, id, k.Next(), add); err != nil {
				return nil, err
			}
		}
		if k.Events() == seen {
			k.Against(&r.Snapshot)
			return k, nil
		}
	}
	k.Skip(runcheck.Snapshot, "the run changes too fast; verify it when it waits or has ended")
	return k, nil
}

// verifyArchived checks an archived run, whose content is trimmed.
func verifyArchived(ctx context.Context, c *client.Client, id string) (*runcheck.Check, error) {
	a, err := c.Bundle(ctx, id)
	if err != nil {
		return nil, err
	}
	r, err := parseRecorded(a.Body)
	if err != nil {
		return nil, err
	}
	return r.check(), nil
}

// verified prints the findings.
func verified(p *render.Printer, k *runcheck.Check) error {
	about := map[string]any{"runId": k.RunID(), "status": k.Status(), "events": k.Events()}
	return verdict.Write(p, about, Verdicts(k))
}

// Verdicts returns the result of each rule.
func Verdicts(k *runcheck.Check) []verdict.Check {
	var checks []verdict.Check
	for _, r := range runcheck.Rows() {
		c := verdict.Check{Name: string(r.Rule), Status: verdict.OK, Detail: r.Promise, Section: r.Section}
		if why := k.Skipped(r.Rule); why != "" {
			c.Status, c.Detail = verdict.Skipped, why
		}
		for _, f := range k.Findings() {
			if f.Rule == r.Rule {
				c.Detail = r.Promise
				c.Found(f, place(f))
			}
		}
		checks = append(checks, c)
	}
	return checks
}

func place(f runcheck.Finding) string {
	if f.Sequence == nil {
		return f.Message
	}
	return fmt.Sprintf("event %d: %s", *f.Sequence, f.Message)
}
