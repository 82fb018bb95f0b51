// Package conformance holds the command that holds any host of OpenWOP against what the
// protocol promises of each, from outside, as its clients see it.
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

// flags are those of the command, as they are given.
type flags struct {
	workflow, input string
	set             []string
	most            time.Duration
}

// Command is `waybill conformance`.
func Command(s *session.Session) *cobra.Command {
	var o flags
	c := &cobra.Command{
		Use:   "conformance",
		Short: "Hold a host against what the protocol promises of every host",
		Long: `Asks a host, this or any other of the protocol, what any client may ask, and holds its
answers against what OpenWOP promises of every host: what it says of itself, whom it lets in,
how it refuses. It writes nothing.

With --workflow it starts one run of that workflow, and looks at the rest: the start and its
idempotency key, the events by the checks of waybill run verify, polling, streams and how they
are resumed. The workflow should end by itself, and do nothing that matters.

What a host does not advertise is skipped, not failed. Each check names the section of the
protocol, with -o wide or json. Its id stays the same from version to version.

Exits with 0 if nothing was found, 1 if something was. What cannot be checked at all, for no
host is there, or the credential or the workflow is refused, ends as it does with every command:
` + exit.Help,
		Example: `  waybill conformance
  waybill conformance --workflow triage --set mail='Where is my parcel?'
  waybill conformance --url https://other.example -o json | jq '.checks[] | select(.status == "fail")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return conform(cmd, s, o) },
	}
	s.Flags(c)
	f := c.Flags()
	f.StringVar(&o.workflow, "workflow", "", "workflow to start one run of; without it nothing is written")
	f.StringVarP(&o.input, "input", "i", "", "inputs of the run: a JSON object, @FILE, or - for standard input")
	f.StringArrayVar(&o.set, "set", nil, "NAME=VALUE: one input of the run; JSON, or else text (repeatable)")
	f.DurationVar(&o.most, "for", time.Minute, "how long to wait for the end of the run")
	return c
}

func conform(cmd *cobra.Command, s *session.Session, o flags) error {
	if o.workflow == "" && (o.input != "" || len(o.set) > 0) {
		return exit.Usagef("--input and --set are of the run that --workflow starts")
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
	if err := p.meet(cmd.Context()); err != nil {
		return err
	}
	if o.workflow != "" {
		if err := p.start(cmd.Context(), o.workflow, inputs); err != nil {
			return err
		}
		session.Talk(cmd, "started %s", p.run.id)
		if err := p.await(cmd.Context(), o.most); err != nil {
			return err
		}
	}
	checks, err := p.all(cmd.Context())
	if err != nil {
		return err
	}
	return verdict.Write(print, p.about(), checks)
}

// all carries out every check.
func (p *probe) all(ctx context.Context) ([]verdict.Check, error) {
	var out []verdict.Check
	for _, group := range []func(context.Context) ([]verdict.Check, error){
		p.table(ofHost()), p.table(ofStart()), p.events, p.table(ofReading()),
	} {
		checks, err := group(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, checks...)
	}
	return out, nil
}

// about says what was looked at.
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

// offer is what checks look at in the discovery document. What it says wrongly is left out
// here, and told by the check of its schema.
type offer struct {
	ProtocolVersion    string
	Implementation     json.RawMessage
	SupportedEnvelopes []string
	SchemaVersions     map[string]json.RawMessage
	DebugBundle        struct{ Supported bool }
	RestTransport      struct{ ConditionalRunGet bool }
	Idempotency        struct{ Supported *bool }
}

// check is one promise that a host is held to.
type check struct {
	id, promise, section string
	do                   func(ctx context.Context, p *probe, f *findings) error
}

// findings are where a promise is not kept.
type findings struct{ lines []string }

func (f *findings) add(format string, args ...any) {
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}

// skipped ends a check that says nothing of this host.
type skipped string

func (s skipped) Error() string { return string(s) }

// found is a finding as documents have it.
type found struct {
	Check   string `json:"check"`
	Message string `json:"message"`
}

// table carries out checks one after the other.
func (p *probe) table(rows []check) func(context.Context) ([]verdict.Check, error) {
	return func(ctx context.Context) ([]verdict.Check, error) {
		var out []verdict.Check
		for _, row := range rows {
			f := &findings{}
			c := verdict.Check{Name: row.id, Status: verdict.OK, Detail: row.promise, Section: row.section}
			err := row.do(ctx, p, f)
			if why, ok := err.(skipped); ok { //nolint:errorlint // a check says so itself
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
