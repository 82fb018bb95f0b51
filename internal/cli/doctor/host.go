package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/show"
	"waybill.dev/waybill/protocol/fault"
)

// host checks the host over its API. Each check needs the ones before it.
func (r *report) host(ctx context.Context, s *session.Session, t session.Target) {
	c, err := s.ClientOf(t)
	if err != nil {
		r.add("reach", fail, "correct the URL", "%v", err)
		return
	}
	began := s.Now()
	doc, err := c.Capabilities(ctx)
	took := s.Now().Sub(began)
	if err != nil {
		r.unreached(ctx, s, t, err)
		return
	}
	r.add("reach", ok, "", "%s responds in %s", c.Base(), show.Duration(took))
	r.clock(doc.Header, began.Add(took/2))
	r.version(doc.Body)
	r.ready(ctx, c)
	if r.auth(ctx, c, s.Now) {
		r.stream(ctx, s, c)
		off := ahead(doc.Header, began.Add(took/2))
		r.lag(ctx, s, c, off)
		r.retention(ctx, c, s.Now().Add(off))
	}
}

// unreached reports why the host could not be reached.
func (r *report) unreached(ctx context.Context, s *session.Session, t session.Target, err error) {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var expired x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown):
		r.add("tls", fail, "set the CA of its certificate with --ca FILE", "%v", err)
	case errors.As(err, &name):
		r.add("tls", fail, "use the host name of the certificate", "%v", err)
	case errors.As(err, &expired):
		r.add("tls", fail, "renew the certificate, or correct the clock of this machine", "%v", err)
	case errors.As(err, &record):
		r.add("tls", fail, "use http:// if the host serves no TLS", "%v", err)
	case errors.Is(err, client.ErrUnreachable):
		r.add("reach", fail, "start the host (waybill dev), or correct the URL", "%v", err)
	default:
		fix := "add the base path of the host to the URL"
		if at := r.elsewhere(ctx, s, t); at != "" {
			fix = "use --url " + at
		}
		r.add("base-path", fail, fix, "%v", err)
	}
}

// elsewhere returns the URL of a host under a shorter base path; empty if there is none.
func (r *report) elsewhere(ctx context.Context, s *session.Session, t session.Target) string {
	u, err := url.Parse(t.URL.Value)
	if err != nil {
		return ""
	}
	for u.Path = strings.Trim(u.Path, "/"); u.Path != ""; {
		u.Path = u.Path[:max(strings.LastIndex(u.Path, "/"), 0)]
		t.URL.Value = strings.TrimRight((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/" + u.Path}).String(), "/")
		c, err := s.ClientOf(t)
		if err != nil {
			return ""
		}
		if _, err := c.Capabilities(ctx); err == nil {
			return t.URL.Value
		}
	}
	return ""
}

// Limits of the difference between the two clocks. The Date header has whole seconds. The host's
// clock decides whether credentials and interrupt tokens are valid.
const (
	clockWarn = 5 * time.Second
	clockFail = time.Minute
)

// ahead is how far the host's clock is ahead of this one, in whole seconds; 0 without a Date.
func ahead(header http.Header, here time.Time) time.Duration {
	there, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0
	}
	return there.Sub(here)
}

func (r *report) clock(header http.Header, here time.Time) {
	if header.Get("Date") == "" {
		r.add("clock", skip, "", "the response has no Date header")
		return
	}
	off := ahead(header, here).Abs()
	const fix = "synchronize both clocks with NTP"
	switch {
	case off > clockFail:
		r.add("clock", fail, fix, "the clocks of this machine and the host differ by %s", show.Duration(off))
	case off > clockWarn:
		r.add("clock", warn, fix, "the clocks of this machine and the host differ by %s", show.Duration(off))
	default:
		r.add("clock", ok, "", "within %s of the host's clock", clockWarn)
	}
}

func (r *report) version(doc []byte) {
	var d struct {
		ProtocolVersion string `json:"protocolVersion"`
		Implementation  struct{ Name, Version string }
		AIProviders     struct {
			Supported []string `json:"supported"`
		} `json:"aiProviders"`
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		r.add("version", fail, "contact the operator of the host", "cannot decode the discovery document: %v", err)
		return
	}
	status, fix := ok, ""
	if !strings.HasPrefix(d.ProtocolVersion, "1.") {
		status, fix = warn, "use the waybill version of the host"
	}
	r.add("version", status, fix, "%s %s, OpenWOP %s", d.Implementation.Name, d.Implementation.Version, d.ProtocolVersion)
	real := slices.DeleteFunc(d.AIProviders.Supported, func(p string) bool { return p == "mock" || p == "sample" })
	if len(real) == 0 {
		r.add("models", warn, "set a provider's key on the host, such as ANTHROPIC_API_KEY, and restart it", "no model provider: answers are samples")
		return
	}
	r.add("models", ok, "", "%s", strings.Join(real, ", "))
}

func (r *report) ready(ctx context.Context, c *client.Client) {
	a, err := c.Get(ctx, "/readyz")
	switch {
	case lacksPath(err):
		r.add("ready", skip, "", "the host has no /readyz")
	case err != nil:
		r.add("ready", fail, "check the logs of the named service", "%v", err)
	default:
		r.add("ready", ok, "", "%s", strings.TrimSpace(string(a.Body)))
		r.whole(a.Body)
	}
}

// lacksPath reports whether a host does not have a path; a host that is not ready answers 503.
func lacksPath(err error) bool {
	status := 0
	if refused, ok := errors.AsType[*client.Error](err); ok {
		status = refused.Status
	} else if foreign, ok := errors.AsType[*client.ForeignError](err); ok {
		status = foreign.Status
	}
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented
}

// whole reports damage of the host's stored data, from the answer of /readyz.
func (r *report) whole(doc []byte) {
	var d struct {
		Warnings []string `json:"warnings"`
	}
	if json.Unmarshal(doc, &d) != nil || len(d.Warnings) == 0 {
		return
	}
	r.add("data", fail, "read the ERROR lines of the host's log, run waybill log verify, and restore what is lost from a backup", "%s", strings.Join(d.Warnings, "; "))
}

// auth checks the credential and the permission to read runs.
func (r *report) auth(ctx context.Context, c *client.Client, now func() time.Time) bool {
	began := now()
	_, err := c.Runs(ctx, client.RunQuery{Limit: 1})
	if err == nil {
		r.add("sign-in", ok, "", "accepted, with runs:read")
		r.store(now().Sub(began))
		return true
	}
	if unoffered, isUnoffered := errors.AsType[*client.UnofferedError](err); isUnoffered {
		// The protocol has no list of runs. It checks a credential before it looks for a run.
		_, err = c.Run(ctx, "run_of_waybill_doctor")
		if none, isError := errors.AsType[*client.Error](err); isError && none.Status == http.StatusNotFound {
			r.add("sign-in", ok, "", "accepted, with runs:read")
			for _, check := range []string{"store", "stream", "event-lag"} {
				r.add(check, skip, "", "%v", unoffered)
			}
			return false
		}
	}
	refused, isError := errors.AsType[*client.Error](err)
	switch {
	case isError && refused.Status == http.StatusForbidden:
		r.add("sign-in", warn, fault.Lookup(refused.Fault.Code).Next, "accepted, without permission to read runs: %s", refused.Fault.Message)
	case isError:
		r.add("sign-in", fail, fault.Lookup(refused.Fault.Code).Next, "%s: %s", refused.Fault.Code, refused.Fault.Message)
	default:
		r.add("sign-in", fail, "see the checks above", "%v", err)
	}
	return false
}

// Limits of the duration of a read. A read waits until the read model has every event that was
// acknowledged before it, so the duration includes the delay of the read model.
const (
	readWarn = 500 * time.Millisecond
	readFail = 5 * time.Second
)

func (r *report) store(took time.Duration) {
	const fix = "check the disk of the eventlog service and its waybill_eventlog_ metrics"
	status := ok
	switch {
	case took > readFail:
		status = fail
	case took > readWarn:
		status = warn
	}
	if status == ok {
		r.add("store", ok, "", "a page of runs, up to date with the log, in %s", show.Duration(took))
		return
	}
	r.add("store", status, fix, "a page of runs took %s; the read model is slow or behind the log", show.Duration(took))
}

// streamWait is how long the first event of a stream may take. A host sends existing events
// immediately.
const streamWait = 3 * time.Second

// stream checks that events are delivered live.
func (r *report) stream(ctx context.Context, s *session.Session, c *client.Client) {
	run, err := streamed(ctx, c)
	if err != nil {
		r.add("stream", skip, "", "%v; start a run and repeat the check", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, streamWait)
	defer cancel()
	began, state := s.Now(), client.State("")
	for _, err := range c.Follow(ctx, run.RunID, client.FollowOptions{OnState: func(st client.State, _ error) { state = st }}) {
		took := s.Now().Sub(began)
		switch {
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			r.add("stream", fail, "see the checks above", "%v", err)
		case err != nil || state == client.Polling:
			r.add("stream", fail, "disable response buffering and short timeouts for /v1/runs/*/events in the proxy",
				"no event of the open run %s arrived within %s", run.RunID, streamWait)
		case run.Status.Terminal():
			r.add("stream", ok, "", "first event after %s; the run has ended, so buffering by a proxy was not checked", show.Duration(took))
		default:
			r.add("stream", ok, "", "first event after %s, from an open run", show.Duration(took))
		}
		return
	}
}

// streamed returns the run to check: an open one if there is one.
func streamed(ctx context.Context, c *client.Client) (*client.RunSummary, error) {
	for _, status := range []string{"waiting-approval", "waiting-input", "waiting-external", "paused", "running"} {
		page, err := c.Runs(ctx, client.RunQuery{Status: status, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(page.Runs) > 0 {
			return &page.Runs[0], nil
		}
	}
	return c.Latest(ctx)
}
