package envelopes

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/document"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/peer"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// target is where `envelope accept` hands its envelope to.
type target struct {
	peer.Address

	tenant, workflow, run, node string
	open                        bool
	untrusted                   bool
}

// Accept sends an envelope to an acceptor.
func Accept() *cobra.Command {
	var at target
	c := &cobra.Command{
		Use:   "accept FILE|-",
		Short: "Hand an envelope to an acceptor",
		Long: `Hands one envelope to an acceptor, as an agent runtime would, and prints the
EnvelopeOutcome document. With --open the run is opened first, if it is not yet.

Exits with 0 if it was accepted, also if that was decided before; 6 if it was refused: the
member status of the document says whether it is invalid, gated or breached a limit; 5 if
the run is not open; 7 if the acceptor cannot be reached or lacks what it needs, so that the
same may be tried again; 2 if the command line or the file cannot be used.`,
		Example: `  waybill envelope accept --open --run r1 --node ask answer.json`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, err := document.Read(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			return at.accept(cmd.Context(), cmd.OutOrStdout(), doc)
		},
	}
	f := c.Flags()
	f.StringVar(&at.Addr, "addr", "127.0.0.1:9091", "HOST:PORT of the acceptor")
	f.StringVar(&at.CA, "ca", "", "PEM certificates that vouch for the acceptor; empty: those that the system trusts, and no TLS on loopback")
	f.BoolVar(&at.Plaintext, "plaintext", false, "send the envelope and the token in clear, because something else guards the way")
	f.StringVar(&at.TokenFile, "token-file", "", "file with the acceptor's bearer token")
	f.StringVar(&at.tenant, "tenant", "default", "tenant of the run")
	f.StringVar(&at.workflow, "workflow", "agent", "workflow id of the run")
	f.StringVar(&at.run, "run", "", "id of the run")
	f.StringVar(&at.node, "node", "", "id of the node, or step, that asked the model")
	f.BoolVar(&at.open, "open", false, "open the run, as one for which no secrets are registered, if it is not open yet")
	f.BoolVar(&at.untrusted, "untrusted", false, "with --open: what comes in with the run is untrusted")
	for _, name := range []string{"run", "node"} {
		_ = c.MarkFlagRequired(name) // the flag is there: a line above
	}
	return c
}

func (at target) accept(ctx context.Context, out io.Writer, doc []byte) error {
	var files func()
	conn, err := at.Dial(func(done func()) { files = done })
	if files != nil {
		defer files()
	}
	if err != nil {
		return fmt.Errorf("%w: --addr: %w", exit.ErrUsage, err)
	}
	defer func() { _ = conn.Close() }()
	client := acceptorv1.NewAcceptorClient(conn)
	run := &runlogv1.RunRef{Tenant: at.tenant, WorkflowId: at.workflow, RunId: at.run}
	if at.open {
		req := &acceptorv1.OpenRunRequest{Run: run, NoSecrets: true}
		if at.untrusted {
			req.TrustBoundary = string(wire.Untrusted)
		}
		if _, err := client.OpenRun(ctx, req); err != nil {
			return fmt.Errorf("open run: %w", err)
		}
	}
	res, err := client.Accept(ctx, &acceptorv1.AcceptRequest{Run: run, NodeId: at.node, Envelope: doc})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%s\n", res.GetOutcome()); err != nil {
		return err
	}
	return judged(accept.StatusOf(res.GetOutcome()))
}

// judged is how a command ends whose envelope was judged; nil when it was accepted.
func judged(outcome accept.Status) error {
	if outcome == accept.Accepted {
		return nil
	}
	return exit.With(exit.Refused, fmt.Errorf("%w: %s", errRefused, outcome))
}
