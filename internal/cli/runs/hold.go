package runs

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
)

func holdCommand(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:   "hold",
		Short: "Set, release or list legal holds, which forbid the erasure of runs",
		Long: `Sets, releases or lists legal holds. A run with a hold is neither erased by a caller nor when its
retention is over. To set or release one needs a key with the scope runs:hold. The audit log records both.`,
		Example: `  waybill run hold set RUN --reason 'case 2026-117'
  waybill run hold list
  waybill run hold release RUN`,
	}
	c.AddCommand(holdSetCommand(s), holdReleaseCommand(s), holdListCommand(s))
	return c
}

func holdSetCommand(s *session.Session) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:               "set RUN",
		Short:             "Set the legal hold of a run",
		Long:              `Sets the legal hold of a run, which may still be in execution. A run that has a hold keeps it.`,
		Example:           `  waybill run hold set RUN --reason 'case 2026-117'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: CompleteIDs(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return exit.Usagef("--reason: why the run is held")
			}
			o, err := about(cmd, s, args[0])
			if err != nil {
				return err
			}
			a, err := o.client.Hold(cmd.Context(), o.id, reason)
			if err != nil {
				return err
			}
			var h client.Hold
			if err := json.Unmarshal(a.Body, &h); err != nil {
				return err
			}
			return printHolds(o.print, a.Body, h)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why the run is held; at most 512 characters")
	return c
}

func holdReleaseCommand(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:               "release RUN",
		Short:             "Release the legal hold of a run",
		Long:              `Releases the legal hold of a run. If its retention is over, it is erased soon.`,
		Example:           `  waybill run hold release RUN`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: CompleteIDs(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := about(cmd, s, args[0])
			if err != nil {
				return err
			}
			if _, err := o.client.Release(cmd.Context(), o.id); err != nil {
				return err
			}
			return printOutcomes(o.print, named([]string{o.id}, "released"))
		},
	}
}

func holdListCommand(s *session.Session) *cobra.Command {
	var limit int
	var cursor string
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List legal holds",
		Example: `  waybill run hold list -o json`,
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
			page, err := c.Holds(cmd.Context(), limit, cursor)
			if err != nil {
				return err
			}
			err = printHolds(p, page.Doc, page.Holds...)
			switch {
			case err != nil || !p.Format.ForPeople():
			case page.NextCursor != "":
				session.Notice(cmd, "more holds: use --cursor %s", page.NextCursor)
			case len(page.Holds) == 0:
				session.Notice(cmd, "no legal holds")
			}
			return err
		},
	}
	c.Flags().IntVar(&limit, "limit", 50, "holds per page, 1 to 200")
	c.Flags().StringVar(&cursor, "cursor", "", "cursor of the previous page")
	return c
}

func printHolds(p *render.Printer, doc []byte, holds ...client.Hold) error {
	row := func(h client.Hold) []byte {
		b, err := render.Encode(h)
		if err != nil {
			return nil
		}
		return b
	}
	return render.Rows(p, doc, holds, row, func(h client.Hold) string { return h.RunID }, []render.Column[client.Hold]{
		{Name: "RUN", Value: func(h client.Hold) string { return h.RunID }},
		{Name: "SINCE", Value: func(h client.Hold) string { return h.Since }},
		{Name: "BY", Value: func(h client.Hold) string { return h.HeldBy }},
		{Name: "REASON", Flex: true, Value: func(h client.Hold) string { return h.Reason }},
	})
}
