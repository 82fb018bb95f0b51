package runs

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/archive"
	"waybill.dev/waybill/internal/archive/store"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
)

// imported is the outcome for one archive.
type imported struct {
	// Name is that of the file below the source.
	Name       string `json:"name"`
	RunID      string `json:"runId,omitempty"`
	WorkflowID string `json:"workflowId,omitempty"`
	Tenant     string `json:"tenant,omitempty"`
	Status     string `json:"status,omitempty"`
	Events     int    `json:"events"`
	// Outcome is valid, archived or unchanged; empty if the archive is damaged.
	Outcome string `json:"outcome,omitempty"`
	// Damage is the problem and its place.
	Damage string `json:"damage,omitempty"`
}

func importCommand(s *session.Session) *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "import SOURCE",
		Short: "Check archives of runs, and copy them to read them here",
		Long: `Reads archives from a file, a directory or s3://BUCKET/PREFIX, and checks each one: its hash, the
chain of its frames, and that it has all events of its run. With --to it copies the valid ones to
another directory or bucket. Archives that are there are not written again.

Archived runs are read with --url archive:TARGET in place of a host: run list, get, events, export
and verify. They cannot be changed. The console opens an archive as a file.

Region, endpoint and credentials of a bucket are those of the AWS_ variables.

Exit status: 0 all archives are valid; 1 one is damaged, and was not copied.`,
		Example: `  waybill run import s3://archive/waybill --to ./old
  waybill run list --url archive:./old --status failed`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := store.OpenSource(cmd.Context(), args[0])
			if err != nil {
				return exit.Usagef("%w", err)
			}
			var target archive.Target
			if cmd.Flags().Changed("to") {
				if target, err = store.Open(cmd.Context(), to); err != nil {
					return exit.Usagef("--to: %w", err)
				}
			}
			return importAll(cmd, s, from, target)
		},
	}
	c.Flags().StringVar(&to, "to", "", "directory or s3://BUCKET/PREFIX to copy the archives to; empty only checks them")
	return c
}

func importAll(cmd *cobra.Command, s *session.Session, from, to archive.Target) error {
	p, err := s.Printer(cmd)
	if err != nil {
		return err
	}
	names, err := from.List(cmd.Context())
	if err != nil {
		return err
	}
	if len(names) == 0 {
		session.Notice(cmd, "no archives in %s", from)
	}
	all, damaged := []imported{}, 0
	for _, name := range names {
		r, err := importOne(cmd.Context(), from, name, to)
		if err != nil {
			return errors.Join(err, printImported(p, all))
		}
		if r.Damage != "" {
			damaged++
		}
		all = append(all, r)
	}
	if err := printImported(p, all); err != nil {
		return err
	}
	if damaged > 0 {
		return exit.Outcome(exit.Failed, strconv.Itoa(damaged)+" archive(s) are damaged")
	}
	return nil
}

// importOne checks an archive, and copies it. to may be nil.
func importOne(ctx context.Context, from archive.Target, name string, to archive.Target) (imported, error) {
	r := imported{Name: name, Outcome: "valid"}
	file, err := from.Get(ctx, name)
	if err != nil {
		return r, err
	}
	a, err := archive.Read(file)
	if damage, ok := errors.AsType[*archive.DamagedError](err); ok {
		r.Outcome, r.Damage = "", damage.Error()
		return r, nil
	}
	if err != nil {
		return r, err
	}
	var run struct{ Status string }
	if err := json.Unmarshal(a.Snapshot, &run); err != nil {
		r.Outcome, r.Damage = "", "run: "+err.Error()
		return r, nil
	}
	r.RunID, r.WorkflowID, r.Tenant, r.Status, r.Events = a.RunID, a.WorkflowID, a.Tenant, run.Status, len(a.Events)
	if to != nil {
		r.Outcome, err = put(ctx, a, to)
	}
	return r, err
}

func printImported(p *render.Printer, all []imported) error {
	doc, err := render.Encode(map[string]any{"archives": all})
	if err != nil {
		return err
	}
	row := func(r imported) []byte {
		b, err := render.Encode(r)
		if err != nil {
			return nil
		}
		return b
	}
	return render.Rows(p, doc, all, row, func(r imported) string { return r.Name }, []render.Column[imported]{
		{Name: "RUN", Value: func(r imported) string { return r.RunID }},
		{Name: "STATUS", Word: func(r imported) string { return r.Status }, Value: func(r imported) string { return r.Status }},
		{Name: "WORKFLOW", Flex: true, Value: func(r imported) string { return r.WorkflowID }},
		{Name: "TENANT", Value: func(r imported) string { return r.Tenant }},
		{Name: "EVENTS", Value: func(r imported) string { return strconv.Itoa(r.Events) }},
		{Name: "OUTCOME", Value: func(r imported) string {
			if r.Damage != "" {
				return "refused"
			}
			return r.Outcome
		}},
		{Name: "NAME", Wide: true, Value: func(r imported) string { return r.Name }},
		{Name: "DAMAGE", Flex: true, Value: func(r imported) string {
			if r.Damage == "" {
				return ""
			}
			return r.Name + ": " + r.Damage
		}},
	})
}
