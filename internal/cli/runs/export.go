package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/archive"
	"waybill.dev/waybill/internal/archive/store"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
)

func exportCommand(s *session.Session) *cobra.Command {
	var what, file, to string
	var q client.RunQuery
	c := &cobra.Command{
		Use:   "export RUN | RUN... --to TARGET | --filter WORDS --to TARGET",
		Short: "Export the debug bundle or the events of a run, or archive runs",
		Long: `Writes the debug bundle of a run, or its events as one JSON document per line, to standard
output or a file. The debug bundle has no content, such as prompts and answers. An existing file is
not overwritten.

--to writes the archives of runs that have ended: their debug bundles with all events and a chain of
hashes, one compressed file for each run. TARGET is a directory or s3://BUCKET/PREFIX; region,
endpoint and credentials of a bucket are those of the AWS_ variables of this process. Runs that are
there are checked and not written again. Exit status 6 if a run could not be archived.`,
		Example: `  waybill run export RUN --file bundle.json
  waybill run export RUN --what events > events.jsonl
  waybill run export --filter 'workflow:triage until:2026-01-01' --to s3://archive/waybill`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: CompleteIDs(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("to") {
				if cmd.Flags().Changed("what") || file != "" {
					return exit.Usagef("--to cannot be combined with --what and --file")
				}
				if (q != (client.RunQuery{})) == (len(args) > 0) {
					return exit.Usagef("want run ids or --filter, not both")
				}
				return exportAll(cmd, s, args, q, to)
			}
			if len(args) != 1 || q != (client.RunQuery{}) {
				return exit.Usagef("want one run id; several runs need --to")
			}
			if what != "bundle" && what != "events" {
				return exit.Usagef("--what %q: want bundle or events", what)
			}
			o, err := about(cmd, s, args[0])
			if err != nil {
				return err
			}
			if o.print.Query != nil {
				return exit.Usagef("--query is not supported by export; use it with run events")
			}
			return export(cmd, o, what, file)
		},
	}
	c.Flags().StringVar(&what, "what", "bundle", "bundle or events")
	c.Flags().StringVarP(&file, "file", "f", "", "file to write; empty uses standard output")
	c.Flags().StringVar(&to, "to", "", "directory or s3://BUCKET/PREFIX for archives")
	queryFlags(c, &q)
	return c
}

func export(cmd *cobra.Command, o *one, what, file string) (err error) {
	out := cmd.OutOrStdout()
	if file != "" {
		// The export may be confidential, so only its owner may read the file.
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // G304: the user names the file
		if err != nil {
			return exit.Usagef("--file: %w", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	if what == "events" {
		o.print.Out, o.print.Format = out, render.JSONL
		return o.events(cmd, 0, 0, func(client.Event) bool { return true })
	}
	a, err := o.client.Bundle(cmd.Context(), o.id)
	if err != nil {
		return err
	}
	if _, err := out.Write(a.Body); err != nil {
		return err
	}
	var b struct {
		Truncated       bool   `json:"truncated"`
		TruncatedReason string `json:"truncatedReason"`
		RedactionMode   string `json:"redactionMode"`
	}
	if err := json.Unmarshal(a.Body, &b); err != nil {
		return err
	}
	session.Notice(cmd, "redaction: %s", b.RedactionMode)
	if b.Truncated {
		session.Notice(cmd, "truncated: %s", b.TruncatedReason)
	}
	return nil
}

// exportAll writes the archives of runs to a target.
func exportAll(cmd *cobra.Command, s *session.Session, names []string, q client.RunQuery, to string) error {
	p, err := s.Printer(cmd)
	if err != nil {
		return err
	}
	target, err := store.Open(cmd.Context(), to)
	if err != nil {
		return exit.Usagef("--to: %w", err)
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
	var all []outcomeOf
	var failed error
	for _, id := range ids {
		status, err := exportTo(cmd.Context(), c, id, target)
		refused, isRefused := errors.AsType[*client.Error](err)
		if err != nil && (len(ids) == 1 || !isRefused) {
			return errors.Join(err, printOutcomes(p, all))
		}
		r := outcomeOf{RunID: id, OK: err == nil, Status: status}
		if err != nil {
			r.Error = refusal(refused)
			failed = exit.Outcome(exit.Refused, "a run could not be archived")
		}
		all = append(all, r)
	}
	return errors.Join(printOutcomes(p, all), failed)
}

// exportTo writes the archive of a run to a target, unless it is there.
func exportTo(ctx context.Context, c *client.Client, id string, target archive.Target) (status string, err error) {
	answer, err := c.RunArchive(ctx, id)
	if err != nil {
		return "", err
	}
	a, err := archive.Open(answer.Body)
	if err != nil {
		return "", fmt.Errorf("the archive of run %s was damaged on its way: %w", id, err)
	}
	return put(ctx, a, target)
}

// put writes an archive to a target. A valid one that is there stays.
func put(ctx context.Context, a *archive.Archive, target archive.Target) (status string, err error) {
	name := a.Name()
	file, err := target.Get(ctx, name)
	if err == nil {
		if there, err := archive.Read(file); err == nil && there.Head() == a.Head() {
			return "unchanged", nil
		}
	} else if !errors.Is(err, archive.ErrNotFound) {
		return "", err
	}
	if file, err = archive.Pack(a.Doc); err != nil {
		return "", err
	}
	return "archived", target.Put(ctx, name, file)
}
