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

// target is the acceptor and the run that `envelope accept` submits to.
type target struct {
	peer.Address

	tenant, workflow, run, node string
	open                        bool
	untrusted                   bool
	modelOutput                 bool
}

// Accept is `waybill envelope accept`.
func Accept() *cobra.Command {
	var at target
	c := &cobra.Command{
		Use:   "accept FILE|-",
		Short: "Submit an envelope to an acceptor",
		Long: `Submits one envelope to an acceptor, as an agent runtime does, and prints the EnvelopeOutcome
document. With --open, opens the run first if it is not open.

Exit status: 0 accepted, now or before; 6 rejected, with the reason in the document's status
(invalid, gated, breached); 5 the run is not open; 7 the acceptor is unreachable or unavailable,
retry; 2 usage, or an unreadable file.`,
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
	f.StringVar(&at.CA, "ca", "", "PEM file of CAs for the acceptor; empty uses the system's CAs, and no TLS on loopback")
	f.BoolVar(&at.Plaintext, "plaintext", false, "send the envelope and the token without TLS, for networks that are secured otherwise")
	f.StringVar(&at.TokenFile, "token-file", "", "file with the acceptor's bearer token")
	f.StringVar(&at.tenant, "tenant", "default", "tenant of the run")
	f.StringVar(&at.workflow, "workflow", "agent", "workflow id of the run")
	f.StringVar(&at.run, "run", "", "id of the run")
	f.StringVar(&at.node, "node", "", "id of the node or step that called the model")
	f.BoolVar(&at.open, "open", false, "open the run, without registered secrets, if it is not open")
	f.BoolVar(&at.untrusted, "untrusted", false, "with --open: mark the input of the run as untrusted")
	f.BoolVar(&at.modelOutput, "model-output", false, "the document is a model's own text: fill in a missing meta, envelopeId and correlationId")
	for _, name := range []string{"run", "node"} {
		_ = c.MarkFlagRequired(name) // fails for unknown flags only
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
		return exit.Usagef("--addr: %w", err)
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
	res, err := client.Accept(ctx, &acceptorv1.AcceptRequest{
		Run: run, NodeId: at.node, Envelope: doc, ModelOutput: at.modelOutput,
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%s\n", res.GetOutcome()); err != nil {
		return err
	}
	return judged(accept.StatusOf(res.GetOutcome()))
}

// judged maps an outcome to the error of the command; nil if the envelope was accepted.
func judged(outcome accept.Status) error {
	if outcome == accept.Accepted {
		return nil
	}
	return exit.With(exit.Refused, fmt.Errorf("%w: %s", errRefused, outcome))
}
