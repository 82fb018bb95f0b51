package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waybill.dev/waybill/internal/publishedtest"
)

// Schemas validates documents against the protocol's published schemas.
type Schemas struct {
	mu       sync.Mutex // guards the fields below
	all      publishedtest.Schemas
	compiled map[string]*jsonschema.Schema
}

// published are the schemas of all tests of a package: each is read and compiled once.
var published Schemas

// LoadSchemas reads the published schemas. Without them the test is skipped, or fails in CI.
func LoadSchemas(t testing.TB) *Schemas {
	t.Helper()
	published.mu.Lock()
	defer published.mu.Unlock()
	if published.compiled == nil {
		published.all, published.compiled = publishedtest.Load(t), map[string]*jsonschema.Schema{}
	}
	return &published
}

// Validate validates a document against a published schema, given by its file name.
func (s *Schemas) Validate(file string, doc []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sch := s.compiled[file]
	if sch == nil {
		var err error
		if sch, err = s.all.Compile(file); err != nil {
			return fmt.Errorf("compile %s: %w", file, err)
		}
		s.compiled[file] = sch
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return err
	}
	if err := sch.Validate(v); err != nil {
		return fmt.Errorf("%s: %w\n%s", file, err, doc)
	}
	return nil
}

// Event validates an event against the schema of events, and its payload against that of its type.
func (s *Schemas) Event(doc []byte) error {
	if err := s.Validate("run-event.schema.json", doc); err != nil {
		return err
	}
	var e struct {
		Type    string
		Payload json.RawMessage
	}
	if err := json.Unmarshal(doc, &e); err != nil {
		return err
	}
	return s.Payload(e.Type, e.Payload)
}

// vendorPrefix is the prefix of this host's own event types, which have no published schema.
const vendorPrefix = "waybill."

// Payload validates a payload with the schema of its event type. A type without a published schema is
// an error, except this host's own types. The closed schema of an interrupt excludes the members that
// the engine assigns, so these are removed first (OpenWOP envelope contract §10, C5). The schema of
// channel writes is older than the reducer message, which the schema of workflows includes (OpenWOP
// host contract §5.9).
func (s *Schemas) Payload(eventType string, payload []byte) error {
	if strings.HasPrefix(eventType, vendorPrefix) {
		return nil
	}
	if eventType == "channel.written" {
		payload = bytes.Replace(payload, []byte(`"reducer":"message"`), []byte(`"reducer":"append"`), 1)
	}
	if eventType == "interrupt.requested" {
		var m map[string]json.RawMessage
		if err := json.Unmarshal(payload, &m); err != nil {
			return err
		}
		for _, name := range []string{"runId", "nodeId", "interruptId", "requestedAt"} {
			delete(m, name)
		}
		var err error
		if payload, err = json.Marshal(m); err != nil {
			return err
		}
	}
	return s.Validate("run-event-payloads.schema.json#/$defs/_typeIndex/properties/"+eventType, payload)
}
