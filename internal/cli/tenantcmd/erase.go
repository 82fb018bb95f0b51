// Package tenantcmd has the commands about the key's tenant.
package tenantcmd

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/protocol/wire"
)

type eraseFlags struct{ cancel, dryRun, yes bool }

// Erase is `waybill tenant erase`.
func Erase(s *session.Session) *cobra.Command {
	var o eraseFlags
	c := &cobra.Command{
		Use:   "erase",
		Short: "Erase everything of the key's tenant",
		Long: `Erases all runs of the key's tenant, and then its workflows, webhooks and other records. This cannot be
undone. Its audit log stays. Remove its keys from the host's settings afterwards.

Runs that have not ended are refused, or cancelled with --cancel. Runs with a legal hold stay, and with
them the rest of the tenant: release them first. If the command was interrupted, repeat it.

Needs a key with the scopes runs:read, runs:delete and tenant:erase, for --cancel also runs:cancel, and
confirmation or --yes. --dry-run only counts. Exit status 6 if something could not be erased.`,
		Example: `  waybill tenant erase --dry-run
  waybill tenant erase --cancel --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.Client(cmd)
			if err != nil {
				return err
			}
			return erase(cmd, c, o)
		},
	}
	c.Flags().BoolVar(&o.cancel, "cancel", false, "cancel runs that have not ended")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "only count the runs")
	c.Flags().BoolVar(&o.yes, "yes", false, "skip the confirmation")
	s.Flags(c)
	return c
}

func erase(cmd *cobra.Command, c *client.Client, o eraseFlags) error {
	ctx := cmd.Context()
	active, err := activeRuns(ctx, c)
	if err != nil {
		return err
	}
	ended, _, err := eraseRuns(ctx, c, true)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d ended runs, %d others\n", ended, len(active))
	if o.dryRun {
		return nil
	}
	if len(active) > 0 && !o.cancel {
		return exit.With(exit.Refused, fmt.Errorf("%d runs have not ended: cancel them, or use --cancel", len(active)))
	}
	if err := confirm(cmd, o.yes); err != nil {
		return err
	}
	for len(active) > 0 {
		n := min(len(active), 100)
		if _, err := c.CancelAll(ctx, active[:n], "the tenant is erased"); err != nil {
			return err
		}
		active = active[n:]
	}
	erased, refused, err := eraseRuns(ctx, c, false)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d runs erased\n", erased)
	if len(refused) > 0 {
		return exit.With(exit.Refused, fmt.Errorf("%d runs could not be erased: %s", len(refused), strings.Join(refused[:min(len(refused), 5)], "; ")))
	}
	if _, err := c.EraseTenant(ctx); err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), "tenant erased; remove its keys from the host's settings")
	return nil
}

func activeRuns(ctx context.Context, c *client.Client) (ids []string, err error) {
	for _, status := range wire.Statuses() {
		for cursor := ""; !status.Terminal(); {
			page, err := c.Runs(ctx, client.RunQuery{Status: string(status), Limit: 200, Cursor: cursor})
			if err != nil {
				return nil, err
			}
			for _, r := range page.Runs {
				ids = append(ids, r.RunID)
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
	}
	return ids, nil
}

// eraseRuns erases all ended runs, or counts them. A child can be erased after its parent, so it passes
// the list again while that helps.
func eraseRuns(ctx context.Context, c *client.Client, dryRun bool) (erased int, refused []string, err error) {
	for {
		before := erased
		refused = nil
		for cursor := ""; ; {
			page, err := c.Erase(ctx, client.Erasure{All: true, DryRun: dryRun, Cursor: cursor})
			if err != nil {
				return erased, nil, err
			}
			erased += page.Erased
			for _, r := range page.Refused {
				refused = append(refused, r.RunID+": "+r.Message)
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		if dryRun || erased == before || len(refused) == 0 {
			return erased, refused, nil
		}
	}
}

func confirm(cmd *cobra.Command, yes bool) error {
	if yes {
		return nil
	}
	const what = "erase everything of the tenant for good"
	if !term.IsTTY(cmd.InOrStdin()) || !term.IsTTY(cmd.ErrOrStderr()) {
		return exit.Usagef("this would %s; confirm with --yes, or count with --dry-run", what)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s? Type yes to confirm: ", what)
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != "yes" {
		return exit.Usagef("not confirmed; nothing was changed")
	}
	return nil
}
