package host

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"waybill.dev/waybill/internal/host/peer"
	"waybill.dev/waybill/services/gateway/session"
)

// consolePath is the path of the console, below the base path.
const consolePath = "/console/"

// Browser configures the console and the base path.
type Browser struct {
	// BasePath is the path prefix of the REST API and the console; empty means the root.
	BasePath string
	Console  bool
	// Session is how long a sign-in to the console is valid.
	Session time.Duration
	// StalledAfter is the time without an event after which a run is shown as stalled.
	StalledAfter time.Duration
	// Links are NAME=URL.
	Links []string
}

// stalledAfter is longer than the usual time to a model's first token.
const stalledAfter = 5 * time.Minute

func defaultBrowser() Browser {
	return Browser{Console: true, Session: session.Lifetime, StalledAfter: stalledAfter}
}

// maxSession is shorter than the day for which the end of a session is stored.
const maxSession = 23 * time.Hour

// basePathForm matches paths that need no escapes in HTML, links and cookies.
var basePathForm = regexp.MustCompile(`^(/[A-Za-z0-9][A-Za-z0-9._~-]*)*$`)

// validate returns all errors, joined. publicURL is the host's URL for clients.
func (o *Browser) validate(publicURL string) error {
	o.BasePath = strings.TrimSuffix(o.BasePath, "/")
	if !basePathForm.MatchString(o.BasePath) {
		return fmt.Errorf("--base-path %q: want a path such as /a/b, of letters, digits and -._~", o.BasePath)
	}
	if err := between("console-session", o.Session, time.Minute, maxSession); err != nil {
		return err
	}
	if o.StalledAfter < time.Second {
		return fmt.Errorf("--stalled-after %s: want at least 1s", o.StalledAfter)
	}
	if _, err := parseLinks(o.Links); err != nil {
		return err
	}
	u, err := url.Parse(publicURL)
	if err != nil || o.BasePath == "" {
		return nil // Public.Validate reports it
	}
	if path := strings.TrimSuffix(u.Path, "/"); path != "" && path != o.BasePath {
		return fmt.Errorf("--public-url %s: its path is not --base-path %s; give the same, or no path. A proxy before the host has to keep it", publicURL, o.BasePath)
	}
	return nil
}

// linkPlaces are the placeholders in the URL of a link.
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
			return nil, fmt.Errorf("--console-link %s: a password in a URL is shown to all users of the console", name)
		case strings.ContainsAny(u.String(), "{}") || strings.Contains(u.String(), "%7B"):
			return nil, fmt.Errorf("--console-link %s: of a run there are {runId}, {workflowId}, {status}, {startedAt} and {completedAt}", name)
		}
		links = append(links, session.Link{Name: strings.TrimSpace(name), URL: to})
	}
	return links, nil
}

// consoleConfig describes the console; nil if it is not served.
func (p *publicServer) consoleConfig(mode string) *session.Config {
	if !p.opts.Browser.Console {
		return nil
	}
	links, _ := parseLinks(p.opts.Browser.Links) // validated
	return &session.Config{Mode: mode, Lifetime: p.opts.Browser.Session, HTTPS: strings.HasPrefix(p.baseURL(), "https://"), Links: links}
}

// consoleLink returns the console's URL with a code that signs in once. The code is for users of this
// terminal, so a host with a public address has none.
func (p *publicServer) consoleLink(a Addresses) string {
	if a.Console == "" || !peer.OnLoopback(p.opts.HTTPAddr) {
		return a.Console
	}
	return a.Console + "#code=" + p.gateway.MintCode(FirstKey(p.opts.APIKeys))
}
