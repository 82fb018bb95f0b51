package harness

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
)

// Checked validates every answer and every frame that the client reads against the published
// schemas.
func (c *Client) Checked(s *Schemas) *Client {
	checked := *c
	checked.schemas = s
	return &checked
}

// To returns a client of another host with the same validation.
func (c *Client) To(h *Host, key string) *Client { return h.Client(key).Checked(c.schemas) }

var (
	runPath         = regexp.MustCompile(`^/v1/runs/[^/:]+$`)
	bundlePath      = regexp.MustCompile(`^/v1/runs/[^/:]+/debug-bundle$`)
	annotationsPath = regexp.MustCompile(`^/v1/runs/[^/:]+/annotations$`)
	eventsPath      = regexp.MustCompile(`^/v1/runs/[^/:]+/events(/poll)?$`)
)

// seams have their own error format, and the absent pack registry answers in plain text (OpenWOP
// host contract §2.2, envelope contract §23).
func ownErrors(path string) bool {
	return strings.HasPrefix(path, "/v1/host/sample/") || strings.HasPrefix(path, "/v1/packs")
}

// check validates an answer against the host's own description and, for a checked client, against the
// published schema of the requested path.
func (c *Client) check(method, target string, a *Answer) error {
	path, _, _ := strings.Cut(target, "?")
	d, err := c.description()
	if err == nil && d != nil {
		err = d.Answer(method, path, a)
	}
	if c.schemas == nil || method == http.MethodHead || err != nil {
		return err
	}
	switch {
	case a.Status >= http.StatusBadRequest && ownErrors(path):
		return nil
	case a.Status >= http.StatusBadRequest:
		return c.schemas.Validate("error-envelope.schema.json", a.Body)
	case a.Status == http.StatusCreated && annotationsPath.MatchString(path):
		return c.schemas.Validate("annotation.schema.json", a.Body)
	case a.Status != http.StatusOK || method != http.MethodGet:
		return nil
	case path == "/.well-known/openwop":
		return c.schemas.Validate("capabilities.schema.json", a.Body)
	case strings.HasPrefix(path, "/v1/runs/") && strings.HasSuffix(path, ":diff"):
		return c.schemas.Validate("run-diff-response.schema.json", a.Body)
	case path == "/v1/audit/verify":
		return c.schemas.Validate("audit-verify-result.schema.json", a.Body)
	case annotationsPath.MatchString(path):
		return c.schemas.annotations(a)
	case bundlePath.MatchString(path):
		return c.schemas.Validate("debug-bundle.schema.json", a.Body)
	case runPath.MatchString(path):
		return c.schemas.Validate("run-snapshot.schema.json", a.Body)
	case eventsPath.MatchString(path) && a.Header.Get("Content-Type") == "application/json":
		return c.schemas.page(a)
	}
	return nil
}

// checkRequest validates a request that was accepted against the host's own description.
func (c *Client) checkRequest(method, target, body string, header http.Header, a *Answer) error {
	d, err := c.description()
	if err != nil || d == nil || a.Status >= http.StatusMultipleChoices {
		return err
	}
	return d.Request(method, target, body, header)
}

func (s *Schemas) page(a *Answer) error {
	var p Page
	if err := a.JSON(&p); err != nil {
		return err
	}
	return s.events(p.Events)
}

func (s *Schemas) annotations(a *Answer) error {
	var list struct{ Annotations []json.RawMessage }
	if err := a.JSON(&list); err != nil {
		return err
	}
	for _, doc := range list.Annotations {
		if err := s.Validate("annotation.schema.json", doc); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schemas) events(docs []json.RawMessage) error {
	for _, d := range docs {
		if err := s.Event(d); err != nil {
			return err
		}
	}
	return nil
}

// Frame validates the content of a stream's frame.
func (s *Schemas) Frame(f Frame) error {
	switch f.Event {
	case "": // a comment
		return nil
	case "run.annotated":
		return s.Validate("annotation.schema.json", []byte(f.Data))
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
