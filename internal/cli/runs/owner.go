package runs

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/term"
)

func ownerCommand(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "owner RUN",
		Short: "Show which dispatcher owns a run, or why no dispatcher executes it",
		Long: `Shows which dispatcher owns a run, since when and until when. If no dispatcher executes the
run, shows the slot or limit that it waits for, or why it is quarantined. "owner" is the id of a
process, new at each of its starts, and "host" its machine or pod. "epoch" counts the claims of the
run: each takeover and each restart of its execution is a new claim. The state is one of:

  none      no dispatcher owns the run
  owned     the dispatcher's lease is valid
  released  the dispatcher has released the run
  expired   the dispatcher's lease has expired; another dispatcher takes the run over
  unknown   the host does not record owners`,
		Example: `  waybill run owner @latest
  waybill run owner RUN -o json | jq -r .expiresAt`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: CompleteIDs(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := about(cmd, s, args[0])
			if err != nil {
				return err
			}
			o, err := at.client.Owner(cmd.Context(), at.id)
			if err != nil {
				return err
			}
			return at.print.Document(o.Doc, o.Owner, func(w io.Writer) error {
				if _, err := fmt.Fprintf(w, "%s %s\n", term.Clean(o.RunID), term.Clean(o.State)); err != nil {
					return err
				}
				epoch := ""
				if o.Epoch > 0 {
					epoch = fmt.Sprintf("%d (claims of the run so far)", o.Epoch)
				}
				now := s.Now()
				return render.Pairs(w, "owner", o.Owner, "host", o.Host, "epoch", epoch, "since", o.Since, "until", o.ExpiresAt,
					"waits for", limited(o.Limit, now), "quarantine", quarantined(o.Quarantine, now), "next", release(o.Quarantine))
			})
		},
	}
}
