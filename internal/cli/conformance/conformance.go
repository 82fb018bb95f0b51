// Package conformance has the command that checks any OpenWOP host against the rules of the
// protocol, through the public API.
package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/runs"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/verdict"
)

// flags are the flags of the command.
type flags struct {
	workflow, input string
	set             []string
	maxWait         time.Duration
}

// Command is `waybill conformance`.
func Command(s *session.Session) *cobra.Command {
	var o flags
	c := &cobra.Command{
		Use:   "conformance",
		Short: "Check a host against the rules of the protocol",
		Long: `Sends requests to any OpenWOP host and checks the responses against the rules of the
protocol: discovery, authentication and errors. It writes nothing.

With --workflow it also starts one run of that workflow. It then checks the start and its
idempotency key, the events (as waybill run verify does), polling, streams and their resumption.
Use a workflow that ends without an answer and has no side effects.

Capabilities that the host does not advertise are skipped. With -o wide or json, each check names
its section of the protocol. Ids of checks are stable across versions.

Exit status: 0 no check failed; 1 a check failed. If the host is unreachable or rejects the
credential or the workflow, the status is that of other commands:
` + exit.Help,
		Example: `  waybill conformance
  waybill conformance --workflow triage --set mail='Where is my parcel?'
  waybill conformance --url https://other.example -o json | jq '.checks[] | select(.status == "fail")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return conform(cmd, s, o) },
	}
	s.Flags(c)
	f := c.Flags()
	f.StringVar(&o.workflow, "workflow", "", "workflow to start one run of; empty starts no run")
	f.StringVarP(&o.input, "input", "i", "", "inputs of the run: JSON object, @FILE, or - for standard input")
	f.StringArrayVar(&o.set, "set", nil, "NAME=VALUE, one input of the run, as JSON or text (repeatable)")
	f.DurationVar(&o.maxWait, "for", time.Minute, "maximum wait for the end of the run")
	return c
}

func conform(cmd *cobra.Command, s *session.Session, o flags) error {
	if o.workflow == "" && (o.input != "" || len(o.set) > 0) {
		return exit.Usagef("--input and --set need --workflow")
	}
	print, err := s.Printer(cmd)
	if err != nil {
		return err
	}
	inputs, err := runs.Inputs(cmd.InOrStdin(), o.input, o.set)
	if err != nil {
		return err
	}
	t, err := s.Resolve(cmd)
	if err != nil {
		return err
	}
	p := &probe{hasKey: t.Token.Value != ""}
	if p.keyed, err = s.ClientOf(t); err != nil {
		return err
	}
	if p.open, err = s.ClientOf(session.Target{URL: t.URL, CA: t.CA}); err != nil {
		return err
	}
	if err := p.connect(cmd.Context()); err != nil {
		return err
	}
	if o.workflow != "" {
		if err := p.start(cmd.Context(), o.workflow, inputs); err != nil {
			return err
		}
		session.Notice(cmd, "started %s", p.run.id)
		if err := p.await(cmd.Context(), o.maxWait); err != nil {
			return err
		}
	}
	checks, err := p.all(cmd.Context())
	if err != nil {
		return err
	}
	return verdict.Write(print, p.about(), checks)
}

// all runs every check.
func (p *probe) all(ctx context.Context) ([]verdict.Check, error) {
	var out []verdict.Check
	for _, group := range []func(context.Context) ([]verdict.Check, error){
		p.table(hostChecks()), p.table(startChecks()), p.events, p.table(readChecks()),
	} {
		checks, err := group(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, checks...)
	}
	return out, nil
}

// about returns the host and the run of the report.
func (p *probe) about() map[string]any {
	about := map[string]any{"url": p.keyed.Base(), "protocolVersion": p.offer.ProtocolVersion}
	if p.offer.Implementation != nil {
		about["implementation"] = p.offer.Implementation
	}
	if p.run != nil {
		about["runId"] = p.run.id
	}
	return about
}

// offer has the members of the discovery document that checks use. Members of a wrong type stay
// empty; the schema check reports them.
type offer struct {
	ProtocolVersion    string
	Implementation     json.RawMessage
	SupportedEnvelopes []string
	SchemaVersions     map[string]json.RawMessage
	DebugBundle        struct{ Supported bool }
	RestTransport      struct{ ConditionalRunGet bool }
	Idempotency        struct{ Supported *bool }
}

// check is one rule of the protocol that a host is checked against.
type check struct {
	id, rule, section string
	do                func(ctx context.Context, p *probe, f *findings) error
}

// findings are the violations that a check found.
type findings struct{ lines []string }

func (f *findings) add(format string, args ...any) {
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}

// skipped ends a check that does not apply to this host; it is the reason.
type skipped string

func (s skipped) Error() string { return string(s) }

// found is a finding in JSON output.
type found struct {
	Check   string `json:"check"`
	Message string `json:"message"`
}

// table runs checks one after the other.
func (p *probe) table(rows []check) func(context.Context) ([]verdict.Check, error) {
	return func(ctx context.Context) ([]verdict.Check, error) {
		var out []verdict.Check
		for _, row := range rows {
			f := &findings{}
			c := verdict.Check{Name: row.id, Status: verdict.OK, Detail: row.rule, Section: row.section}
			err := row.do(ctx, p, f)
			if why, ok := err.(skipped); ok { //nolint:errorlint // returned unwrapped by checks
				c.Status, c.Detail = verdict.Skipped, string(why)
			} else if err != nil {
				return nil, err
			}
			for _, line := range f.lines {
				c.Found(found{row.id, line}, line)
			}
			out = append(out, c)
		}
		return out, nil
	}
}
