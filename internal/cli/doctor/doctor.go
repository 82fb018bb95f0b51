// Package doctor holds the command that says what is in the way between the command line
// and a host.
package doctor

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/internal/version"
)

// The verdicts.
const (
	ok   = "ok"
	warn = "warn"
	fail = "fail"
	skip = "skipped"
)

// check is one thing that was looked at.
type check struct {
	Name   string `json:"check"`
	Status string `json:"status"`
	Detail string `json:"detail"`
	// Fix is what to do about it.
	Fix string `json:"fix,omitempty"`
}

// report collects checks.
type report struct{ checks []check }

func (r *report) add(name, status, fix, detail string, args ...any) {
	r.checks = append(r.checks, check{name, status, fmt.Sprintf(detail, args...), fix})
}

// Command is `waybill doctor`.
func Command(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is in the way between here and a host, and how to mend it",
		Long: `Looks at the settings here, and at the host: can it be reached, is it one, does it let you
in, does its store keep up, do its events come through while they happen and how late, do
the clocks agree. What is not as it
should be is named with its fix. It changes nothing.

Exits with 0 if nothing failed, 1 if something did.`,
		Example: `  waybill doctor
  waybill doctor --url https://waybill.example -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			r := &report{}
			r.add("build", ok, "", "%s %s", version.Name, version.Version)
			r.terminal(p)
			if t, good := r.settings(cmd, s); good {
				r.host(cmd.Context(), s, t)
			}
			if err := write(p, r.checks); err != nil {
				return err
			}
			for _, c := range r.checks {
				if c.Status == fail {
					return exit.Outcome(exit.Failed, "a check failed")
				}
			}
			return nil
		},
	}
	s.Flags(c)
	return c
}

func write(p *render.Printer, checks []check) error {
	doc, err := render.Encode(map[string]any{"checks": checks})
	if err != nil {
		return err
	}
	row := func(c check) []byte {
		b, err := render.Encode(c)
		if err != nil {
			return nil
		}
		return b
	}
	return render.Rows(p, doc, checks, row, func(c check) string { return c.Name }, []render.Column[check]{
		{Name: "CHECK", Value: func(c check) string { return c.Name }},
		{Name: "STATUS", Word: func(c check) string { return c.Status }, Value: func(c check) string { return c.Status }},
		{Name: "DETAIL", Value: func(c check) string {
			if c.Fix != "" {
				return c.Detail + "; fix: " + c.Fix
			}
			return c.Detail
		}},
	})
}

func (r *report) terminal(p *render.Printer) {
	if !term.IsTTY(p.Out) {
		r.add("terminal", ok, "", "none: plain text, no colors, no drawing")
		return
	}
	r.add("terminal", ok, "", "%d columns, colors %v", p.Width, p.Color)
}

// settings says which host, and as whom; false if that cannot be told.
func (r *report) settings(cmd *cobra.Command, s *session.Session) (session.Target, bool) {
	_, path, err := s.Contexts()
	if err != nil {
		r.add("contexts", fail, "mend the file, or make it private", "%v", err)
		return session.Target{}, false
	}
	r.add("contexts", ok, "", "%s", path)
	t, err := s.Resolve(cmd)
	if err != nil {
		r.add("settings", fail, "name another context, or set the credential anew", "%v", err)
		return t, false
	}
	r.add("settings", ok, "", "%s (%s), credential: %s", t.URL.Value, t.URL.Source, t.Token.Source)
	r.proxy(t.URL.Value)
	return t, true
}

// proxy says whether something stands between.
func (r *report) proxy(to string) {
	u, err := url.Parse(to)
	if err != nil {
		return // the client says so
	}
	via, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	switch {
	case err != nil:
		r.add("proxy", fail, "correct HTTP_PROXY or HTTPS_PROXY", "%v", err)
	case via != nil:
		r.add("proxy", warn, "add "+u.Hostname()+" to NO_PROXY if it is not meant", "requests go through %s", cmp.Or(via.Redacted(), via.Host))
	default:
		r.add("proxy", ok, "", "none")
	}
}
