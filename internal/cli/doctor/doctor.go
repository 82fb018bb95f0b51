// Package doctor has the command that diagnoses connection problems between the command line and
// a host.
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

// The statuses of a check.
const (
	ok   = "ok"
	warn = "warn"
	fail = "fail"
	skip = "skipped"
)

// check is the result of one check.
type check struct {
	Name   string `json:"check"`
	Status string `json:"status"`
	Detail string `json:"detail"`
	// Fix is how to fix the problem.
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
		Short: "Diagnose connection problems and suggest fixes",
		Long: `Checks the settings of the command line and the connection to the host: address, TLS, proxy,
clocks, credential, delay of the read model, and live delivery of events. Each problem is printed
with a fix. It changes nothing.

Exit status: 0 no check failed; 1 a check failed.`,
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
		r.add("terminal", ok, "", "none; output is plain text without colors")
		return
	}
	r.add("terminal", ok, "", "%d columns, colors %v", p.Width, p.Color)
}

// settings resolves the host and the credential; false if they cannot be read.
func (r *report) settings(cmd *cobra.Command, s *session.Session) (session.Target, bool) {
	_, path, err := s.Contexts()
	if err != nil {
		r.add("contexts", fail, "correct the file or its permissions", "%v", err)
		return session.Target{}, false
	}
	r.add("contexts", ok, "", "%s", path)
	t, err := s.Resolve(cmd)
	if err != nil {
		r.add("settings", fail, "use another context, or set the credential again", "%v", err)
		return t, false
	}
	r.add("settings", ok, "", "%s (%s), credential: %s", t.URL.Value, t.URL.Source, t.Token.Source)
	r.proxy(t.URL.Value)
	return t, true
}

// proxy reports the HTTP proxy between the command line and the host.
func (r *report) proxy(to string) {
	u, err := url.Parse(to)
	if err != nil {
		return // the client reports it
	}
	via, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	switch {
	case err != nil:
		r.add("proxy", fail, "correct HTTP_PROXY or HTTPS_PROXY", "%v", err)
	case via != nil:
		r.add("proxy", warn, "add "+u.Hostname()+" to NO_PROXY to bypass it", "requests go through %s", cmp.Or(via.Redacted(), via.Host))
	default:
		r.add("proxy", ok, "", "none")
	}
}
