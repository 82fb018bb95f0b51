package harness

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
)

// Checked makes every answer and every frame the client reads pass the
// published schemas, whatever the test looks at in it.
func (c *Client) Checked(s *Schemas) *Client {
	checked := *c
	checked.schemas = s
	return &checked
}

// To is a client of another host that checks as this one does.
func (c *Client) To(h *Host, key string) *Client { return h.Client(key).Checked(c.schemas) }

var (
	runPath    = regexp.MustCompile(`^/v1/runs/[^/:]+$`)
	bundlePath = regexp.MustCompile(`^/v1/runs/[^/:]+/debug-bundle$`)
	eventsPath = regexp.MustCompile(`^/v1/runs/[^/:]+/events(/poll)?$`)
)

// seams answer errors in a shape of their own, and the absent pack registry
// answers in plain text (OpenWOP host contract §2.2, envelope contract §23).
func ownErrors(path string) bool {
	return strings.HasPrefix(path, "/v1/host/sample/") || strings.HasPrefix(path, "/v1/packs")
}

// check holds a whole answer against the schema of what was asked for.
func (c *Client) check(method, target string, a *Answer) error {
	if c.schemas == nil || method == http.MethodHead {
		return nil
	}
	path, _, _ := strings.Cut(target, "?")
	switch {
	case a.Status >= http.StatusBadRequest && ownErrors(path):
		return nil
	case a.Status >= http.StatusBadRequest:
		return c.schemas.Validate("error-envelope.schema.json", a.Body)
	case a.Status != http.StatusOK || method != http.MethodGet:
		return nil
	case path == "/.well-known/openwop":
		return c.schemas.Validate("capabilities.schema.json", a.Body)
	case bundlePath.MatchString(path):
		return c.schemas.Validate("debug-bundle.schema.json", a.Body)
	case runPath.MatchString(path):
		return c.schemas.Validate("run-snapshot.schema.json", a.Body)
	case eventsPath.MatchString(path) && a.Header.Get("Content-Type") == "application/json":
		return c.schemas.page(a)
	}
	return nil
}

func (s *Schemas) page(a *Answer) error {
	var p Page
	if err := a.JSON(&p); err != nil {
		return err
	}
	return s.events(p.Events)
}

func (s *Schemas) events(docs []json.RawMessage) error {
	for _, d := range docs {
		if err := s.Event(d); err != nil {
			return err
		}
	}
	return nil
}

// Frame holds what a stream's frame carries against its schema.
func (s *Schemas) Frame(f Frame) error {
	switch f.Event {
	case "": // a comment
		return nil
	case "state.snapshot":
		return s.Validate("run-snapshot.schema.json", []byte(f.Data))
	case "ai.message.chunk":
		return s.Payload("output.chunk", []byte(f.Data))
	case "batch":
		var docs []json.RawMessage
		if err := json.Unmarshal([]byte(f.Data), &docs); err != nil {
			return err
		}
		return s.events(docs)
	default:
		return s.Event([]byte(f.Data))
	}
}
