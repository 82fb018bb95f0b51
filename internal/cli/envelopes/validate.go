package envelopes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/document"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/kinds"
)

// errRefused ends a command that has printed why the envelope was rejected.
var errRefused = errors.New("the envelope was rejected")

// Validate is `waybill envelope validate`.
func Validate(s *session.Session) *cobra.Command {
	var (
		folder, packsDir string
		accepts          []string
		strict           bool
	)
	c := &cobra.Command{
		Use:     "validate FILE|-",
		Aliases: []string{"lint"},
		Short:   "Check whether an envelope would be accepted, without a host",
		Long: `Runs one envelope through the accept pipeline in this process: shape, kind, version, payload,
and with --accepts the node's contract. It records nothing. Redaction of registered secrets,
deduplication and limits are not checked.

Exit status: 0 accepted; 1 rejected; 2 usage, or an unreadable file.`,
		Example: `  waybill envelope validate answer.json --kinds ./kinds
  cat answer.json | waybill envelope validate - -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			doc, err := document.Read(cmd.InOrStdin(), args[0])
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
	f.StringVar(&folder, "kinds", "", "directory of additional envelope kinds, one file KIND.schema.json per kind")
	f.StringVar(&packsDir, "packs", "", "directory of packs, one folder with a pack.json each")
	f.StringSliceVar(&accepts, "accepts", nil, "kinds that the node's contract accepts (repeatable); unset means no contract")
	f.BoolVar(&strict, "strict", false, "reject a schemaVersion below the advertised one")
	s.FormatFlags(f)
	return c
}

func loadKindFiles(folder, packsDir string) (*kinds.Registry, error) {
	files, err := packs.KindFiles(folder)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	registry, err := kinds.New(kinds.LintOff)
	if err != nil {
		return nil, err
	}
	if _, err := registry.LoadDir(files); err != nil {
		return nil, exit.Usagef("--kinds: %w", err)
	}
	// Requirements of packs are not checked, because there is no host.
	all, err := packs.Load(packsDir, pack.Host{Any: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if _, err := registry.AddPack(p); err != nil {
			return nil, exit.Usagef("--packs: %w", err)
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
		_, err := fmt.Fprintf(out, "accepted: %s, version %d\n", res.Attributes.Kind, res.Attributes.Version)
		if err == nil && res.Attributes.Drift {
			_, err = fmt.Fprintf(out, "  schemaVersion is below the advertised %d; a strict host rejects it\n", res.Attributes.AdvertisedVersion)
		}
		return err
	}
	if _, err := fmt.Fprintf(out, "%s: %s\n", res.Refusal.Status, res.Refusal.Reason()); err != nil {
		return err
	}
	for _, d := range res.Refusal.Details {
		if _, err := fmt.Fprintf(out, "  %s: %s (%s)\n", render.Pointer(d.InstancePath), d.Message, d.Keyword); err != nil {
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

// nothingSecret is a redactor without secrets.
type nothingSecret struct{}

func (nothingSecret) Redact(_ context.Context, _ subject.Run, in accept.Texts) (accept.Texts, int, error) {
	return in, 0, nil
}

// nothingRecorded is a ledger that records nothing.
type nothingRecorded struct{}

func (nothingRecorded) Lookup(context.Context, accept.Target, string) (*accept.Record, error) {
	return nil, nil
}

func (nothingRecorded) Record(_ context.Context, at accept.Target, e accept.Entry) (*accept.Record, error) {
	doc, err := json.Marshal(accept.NewAcceptance(e.EnvelopeID, e.Trust, nil))
	return &accept.Record{Type: e.Type, Outcome: doc, Payload: e.Payload, Head: at.Head}, err
}
