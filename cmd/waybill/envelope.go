package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/envelopes"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/kinds"
)

func envelopeCommand(s *session.Session) *cobra.Command {
	c := &cobra.Command{Use: "envelope", Short: "Explain envelopes, check them, hand them to an acceptor"}
	c.AddCommand(envelopes.Explain(s), envelopeValidateCommand(s), envelopeAcceptCommand())
	return c
}

// errRefused ends a command whose envelope was not accepted, and said why.
var errRefused = errors.New("the envelope was refused")

func envelopeValidateCommand(s *session.Session) *cobra.Command {
	var (
		folder, packsDir string
		accepts          []string
		strict           bool
	)
	c := &cobra.Command{
		Use:     "validate FILE|-",
		Aliases: []string{"lint"},
		Short:   "Say whether an envelope would be accepted, without a host",
		Long: `Runs one envelope through the accept pipeline within this process: shape, kind, version,
payload, and with --accepts the node's contract. Nothing is recorded, no secret is
known, and no other envelope counts.

Exits with 0 if it would be accepted, 1 if not, 2 if it cannot be read.`,
		Example: `  waybill envelope validate answer.json --kinds ./kinds
  cat answer.json | waybill envelope validate - -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			doc, err := readDocument(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			registry, err := loadKindFiles(folder, packsDir)
			if err != nil {
				return err
			}
			req := accept.Request{Document: doc}
			if cmd.Flags().Changed("accepts") {
				req.Contract = &accept.Contract{Accepts: accepts}
			}
			return lintEnvelope(cmd.Context(), p, registry, req, strict)
		},
	}
	f := c.Flags()
	f.StringVar(&folder, "kinds", "", "directory of further envelope kinds, one KIND.schema.json a file")
	f.StringVar(&packsDir, "packs", "", "directory of packs, one folder with a pack.json each")
	f.StringSliceVar(&accepts, "accepts", nil, "kinds that the node's contract accepts (repeatable); absent: no contract")
	f.BoolVar(&strict, "strict", false, "refuse a schemaVersion below the advertised one")
	s.FormatFlags(f)
	return c
}

func loadKindFiles(folder, packsDir string) (*kinds.Registry, error) {
	files, err := kindFiles(folder)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	registry, err := kinds.New(kinds.LintOff)
	if err != nil {
		return nil, err
	}
	if _, err := registry.LoadDir(files); err != nil {
		return nil, fmt.Errorf("%w: --kinds: %w", errUsage, err)
	}
	// What the packs need of a host is not looked at: there is none here.
	all, err := loadPacks(packsDir, pack.Host{Any: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if _, err := registry.AddPack(p); err != nil {
			return nil, fmt.Errorf("%w: --packs: %w", errUsage, err)
		}
	}
	return registry, nil
}

func lintEnvelope(ctx context.Context, p *render.Printer, registry *kinds.Registry, req accept.Request, strict bool) error {
	pipeline := accept.New(registry, nothingSecret{}, nothingRecorded{}, time.Now, accept.Policy{Strict: strict})
	res, err := pipeline.Run(ctx, req)
	if err != nil {
		return err
	}
	err = p.Document(res.Outcome, string(accept.StatusOf(res.Outcome)), func(w io.Writer) error { return printVerdict(w, res) })
	if err == nil && res.Refusal != nil {
		return errRefused
	}
	return err
}

func printVerdict(out io.Writer, res *accept.Result) error {
	if res.Refusal == nil {
		_, err := fmt.Fprintf(out, "accepted: %s, version %d\n", res.Facts.Kind, res.Facts.Version)
		if err == nil && res.Facts.Drift {
			_, err = fmt.Fprintf(out, "  schemaVersion is below the advertised %d; a strict host refuses it\n", res.Facts.Floor)
		}
		return err
	}
	if _, err := fmt.Fprintf(out, "%s: %s\n", res.Refusal.Status, res.Refusal.Reason()); err != nil {
		return err
	}
	for _, d := range res.Refusal.Details {
		if _, err := fmt.Fprintf(out, "  %s: %s (%s)\n", shownPath(d.InstancePath), d.Message, d.Keyword); err != nil {
			return err
		}
	}
	for _, k := range res.Refusal.AllowedKinds {
		if _, err := fmt.Fprintf(out, "  accepted here: %s\n", k); err != nil {
			return err
		}
	}
	return nil
}

// nothingSecret is a redactor that knows no secrets.
type nothingSecret struct{}

func (nothingSecret) Redact(_ context.Context, _ subject.Run, in accept.Texts) (accept.Texts, int, error) {
	return in, 0, nil
}

// nothingRecorded is a ledger that forgets what it is told.
type nothingRecorded struct{}

func (nothingRecorded) Recall(context.Context, accept.Place, string) (*accept.Record, error) {
	return nil, nil
}

func (nothingRecorded) Record(_ context.Context, at accept.Place, e accept.Entry) (*accept.Record, error) {
	doc, err := json.Marshal(accept.NewAcceptance(e.EnvelopeID, e.Trust, nil))
	return &accept.Record{Type: e.Type, Outcome: doc, Payload: e.Payload, Head: at.Head}, err
}

// target is where `envelope accept` hands its envelope to.
type target struct {
	peer

	tenant, workflow, run, node string
	open                        bool
	untrusted                   bool
}

func envelopeAcceptCommand() *cobra.Command {
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
			doc, err := readDocument(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			return at.accept(cmd.Context(), cmd.OutOrStdout(), doc)
		},
	}
	f := c.Flags()
	f.StringVar(&at.addr, "addr", "127.0.0.1:9091", "HOST:PORT of the acceptor")
	f.StringVar(&at.ca, "ca", "", "PEM certificates that vouch for the acceptor; empty: those that the system trusts, and no TLS on loopback")
	f.BoolVar(&at.plaintext, "plaintext", false, "send the envelope and the token in clear, because something else guards the way")
	f.StringVar(&at.tokenFile, "token-file", "", "file with the acceptor's bearer token")
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
	conn, err := at.dial(func(done func()) { files = done })
	if files != nil {
		defer files()
	}
	if err != nil {
		return fmt.Errorf("%w: --addr: %w", errUsage, err)
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
