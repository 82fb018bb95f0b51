package main

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/services/gateway/session"
)

// consolePath is where the console is below the REST API.
const consolePath = "/console/"

// consoleOptions are the flags of what browsers meet.
type consoleOptions struct {
	basePath     string
	console      bool
	stalledAfter time.Duration
}

func (o *consoleOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.basePath, "base-path", "", "path below which the REST API and the console are, such as /a/b; probes reach the host without it, too; empty: the root")
	f.DurationVar(&o.stalledAfter, "stalled-after", stalledAfter, "after how long without news a run that the host works on is shown as stalled")
	f.BoolVar(&o.console, "console", true, "serve the web console at /console/")
}

// basePathForm is what stands in HTML, links and cookies without escapes.
var basePathForm = regexp.MustCompile(`^(/[A-Za-z0-9][A-Za-z0-9._~-]*)*$`)

// validate returns all that is wrong, joined; publicURL is where clients reach the host.
func (o *consoleOptions) validate(publicURL string) error {
	o.basePath = strings.TrimSuffix(o.basePath, "/")
	if !basePathForm.MatchString(o.basePath) {
		return fmt.Errorf("--base-path %q: want a path such as /a/b, of letters, digits and -._~", o.basePath)
	}
	if o.stalledAfter < time.Second {
		return fmt.Errorf("--stalled-after %s: want at least 1s", o.stalledAfter)
	}
	u, err := url.Parse(publicURL)
	if err != nil || o.basePath == "" {
		return nil // told elsewhere
	}
	if path := strings.TrimSuffix(u.Path, "/"); path != "" && path != o.basePath {
		return fmt.Errorf("--public-url %s: its path is not --base-path %s; give the same, or no path. A proxy before the host has to keep it", publicURL, o.basePath)
	}
	return nil
}

// stalledAfter is after how long without news a run counts as stalled: longer than models
// take to begin an answer.
const stalledAfter = 5 * time.Minute

// consoleConfig describes the console; nil: it is not served.
func (h *host) consoleConfig() *session.Config {
	if !h.opts.browser.console {
		return nil
	}
	mode := session.Dev
	if h.nats == nil { // the log is elsewhere: a part of a host that is spread
		mode = session.Production
	}
	return &session.Config{Mode: mode, HTTPS: strings.HasPrefix(h.baseURL(), "https://")}
}

// consoleLink is the console's address with a code that signs in once. Only who reads
// this terminal may use it, so a host that others reach gives none.
func (h *host) consoleLink(r readyInfo) string {
	if r.Console == "" || !onLoopback(h.opts.httpAddr) {
		return r.Console
	}
	return r.Console + "#code=" + h.gateway.MintCode(firstKey(h.opts.apiKeys))
}
