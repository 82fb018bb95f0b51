package host

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host/peer"
	"waybill.dev/waybill/services/gateway/session"
)

// consolePath is where the console is below the REST API.
const consolePath = "/console/"

// ConsoleOptions are the flags of what browsers meet.
type ConsoleOptions struct {
	basePath     string
	console      bool
	stalledAfter time.Duration
	links        []string
}

func (o *ConsoleOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.basePath, "base-path", "", "path below which the REST API and the console are, such as /a/b; probes reach the host without it, too; empty: the root")
	f.DurationVar(&o.stalledAfter, "stalled-after", stalledAfter, "after how long without news a run that the host works on is shown as stalled")
	f.StringArrayVar(&o.links, "console-link", nil, "link that the console shows, NAME=URL; {runId}, {workflowId}, {status}, {startedAt} and {completedAt} in the URL are those of a run (repeatable)")
	f.BoolVar(&o.console, "console", true, "serve the web console at /console/")
}

// basePathForm is what stands in HTML, links and cookies without escapes.
var basePathForm = regexp.MustCompile(`^(/[A-Za-z0-9][A-Za-z0-9._~-]*)*$`)

// validate returns all that is wrong, joined; publicURL is where clients reach the host.
func (o *ConsoleOptions) validate(publicURL string) error {
	o.basePath = strings.TrimSuffix(o.basePath, "/")
	if !basePathForm.MatchString(o.basePath) {
		return fmt.Errorf("--base-path %q: want a path such as /a/b, of letters, digits and -._~", o.basePath)
	}
	if o.stalledAfter < time.Second {
		return fmt.Errorf("--stalled-after %s: want at least 1s", o.stalledAfter)
	}
	if _, err := parseLinks(o.links); err != nil {
		return err
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

// linkPlaces are what of a run may stand in the URL of a link.
var linkPlaces = strings.NewReplacer("{runId}", "", "{workflowId}", "", "{status}", "", "{startedAt}", "", "{completedAt}", "")

// parseLinks reads NAME=URL.
func parseLinks(specs []string) ([]session.Link, error) {
	var links []session.Link
	for _, spec := range specs {
		name, to, found := strings.Cut(spec, "=")
		u, err := url.Parse(linkPlaces.Replace(to))
		switch {
		case !found || strings.TrimSpace(name) == "":
			return nil, fmt.Errorf("--console-link %q: want NAME=URL", spec)
		case err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "":
			return nil, fmt.Errorf("--console-link %s: want a URL that begins with https:// or http://", name)
		case u.User != nil:
			return nil, fmt.Errorf("--console-link %s: a password in a URL would be shown to everybody who signs in", name)
		case strings.ContainsAny(u.String(), "{}") || strings.Contains(u.String(), "%7B"):
			return nil, fmt.Errorf("--console-link %s: of a run there are {runId}, {workflowId}, {status}, {startedAt} and {completedAt}", name)
		}
		links = append(links, session.Link{Name: strings.TrimSpace(name), URL: to})
	}
	return links, nil
}

// stalledAfter is after how long without news a run counts as stalled: longer than models
// take to begin an answer.
const stalledAfter = 5 * time.Minute

// consoleConfig describes the console; nil: it is not served.
func (h *Host) consoleConfig() *session.Config {
	if !h.opts.Console.console {
		return nil
	}
	mode := session.Dev
	if h.NATS == nil { // the log is elsewhere: a part of a host that is spread
		mode = session.Production
	}
	links, _ := parseLinks(h.opts.Console.links) // validated
	return &session.Config{Mode: mode, HTTPS: strings.HasPrefix(h.baseURL(), "https://"), Links: links}
}

// ConsoleLink is the console's address with a code that signs in once. Only who reads
// this terminal may use it, so a host that others reach gives none.
func (h *Host) ConsoleLink(r ReadyInfo) string {
	if r.Console == "" || !peer.OnLoopback(h.opts.HTTPAddr) {
		return r.Console
	}
	return r.Console + "#code=" + h.gateway.MintCode(FirstKey(h.opts.APIKeys))
}
