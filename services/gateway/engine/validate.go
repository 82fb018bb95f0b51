package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
)

// problems collects the errors of a request, each with its place.
type problems []fault.Problem

// add adds a problem of the body, addQuery one of a parameter.
func (p *problems) add(path, format string, args ...any) {
	*p = append(*p, fault.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (p *problems) addQuery(name, format string, args ...any) {
	*p = append(*p, fault.Problem{In: fault.Query, Path: name, Message: fmt.Sprintf(format, args...)})
}

// err returns nil without problems, otherwise one fault with all of them.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return fault.Invalid(p[0], p[1:]...)
}

// Limits of OpenWOP host contract §2.3.
const (
	maxTags          = 100
	maxTagRunes      = 256
	maxMetadataBytes = 8192
	maxMetadataDepth = 4
	maxWorkflowID    = 128
)

// checkCreate validates a creation request as far as possible without the workflow.
func checkCreate(req *openwopv1.CreateRunRequest, callbackProblem func(url string) string) error {
	var p problems
	switch id := req.GetWorkflowId(); {
	case id == "":
		p.add("/workflowId", "required: the id of a workflow")
	case len(id) > maxWorkflowID:
		p.add("/workflowId", "want at most %d characters", maxWorkflowID)
	}
	checkDocument(&p, "/inputs", req.GetInputs())
	checkDocument(&p, "/configurable", req.GetConfigurable())
	checkDocument(&p, "/metadata", req.GetMetadata())
	if len(p) > 0 {
		return p.err() // the remaining checks need valid JSON
	}
	checkTags(&p, req.GetTags())
	checkMetadata(&p, req.GetMetadata().GetJson())
	if req.CallbackUrl != nil {
		if reason := callbackProblem(req.GetCallbackUrl()); reason != "" {
			p.add("/callbackUrl", "%s", reason)
		}
	}
	if len(p) == 0 {
		checkConfigurable(&p, req.GetConfigurable().GetJson())
	}
	if err := p.err(); err != nil {
		return err
	}
	return checkUnsupported(req)
}

// checkDocument validates a member that is open JSON. REST bodies are validated as a whole;
// over gRPC this is the first check of these bytes.
func checkDocument(p *problems, path string, d *openwopv1.JsonDocument) {
	if d == nil {
		return
	}
	if err := strictjson.Check(d.GetJson(), strictjson.Default); err != nil {
		e, ok := errors.AsType[*strictjson.Error](err)
		if !ok {
			p.add(path, "want JSON")
			return
		}
		p.add(path+e.Path, "%s", e.Reason)
		return
	}
	if strictjson.KindOf(d.GetJson()) != "an object" {
		p.add(path, "want a JSON object")
	}
}

func checkTags(p *problems, tags []string) {
	if len(tags) > maxTags {
		p.add("/tags", "want at most %d tags, got %d", maxTags, len(tags))
		return
	}
	for i, t := range tags {
		if n := utf8.RuneCountInString(t); n < 1 || n > maxTagRunes {
			p.add("/tags/"+strconv.Itoa(i), "want 1 to %d characters, got %d", maxTagRunes, n)
		}
	}
}

func checkMetadata(p *problems, doc []byte) {
	if len(doc) > maxMetadataBytes {
		p.add("/metadata", "want at most %d bytes, got %d", maxMetadataBytes, len(doc))
	}
	if d := depthOf(doc); d > maxMetadataDepth {
		p.add("/metadata", "want at most %d levels, got %d", maxMetadataDepth, d)
	}
}

// depthOf returns the nesting depth of valid JSON.
func depthOf(doc []byte) int {
	depth, deepest, inString := 0, 0, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// checkConfigurable checks the types of the reserved keys. Unknown keys are accepted.
func checkConfigurable(p *problems, doc []byte) {
	if len(doc) == 0 {
		return
	}
	var c map[string]json.RawMessage
	if json.Unmarshal(doc, &c) != nil {
		return
	}
	number := func(key string, ok func(float64) bool, want string) {
		raw, given := c[key]
		if !given {
			return
		}
		var f float64
		if json.Unmarshal(raw, &f) != nil || string(raw) == "null" || !ok(f) {
			p.add("/configurable/"+key, "want %s", want)
		}
	}
	whole := func(f float64) bool { return f >= 1 && f == math.Trunc(f) }
	number("recursionLimit", whole, "an integer of at least 1")
	number("maxTokens", whole, "an integer of at least 1")
	number("runTimeoutMs", func(f float64) bool { return f > 0 }, "a number greater than 0")
	number("temperature", func(f float64) bool { return f >= 0 && f <= 2 }, "a number from 0 to 2")
	text := func(key string) {
		var s string
		if raw, given := c[key]; given && (json.Unmarshal(raw, &s) != nil || s == "") {
			p.add("/configurable/"+key, "want a non-empty string")
		}
	}
	for _, key := range []string{"model", "ai.provider", "ai.model", "ai.credentialRef"} {
		text(key)
	}
	var v string
	if raw, given := c["reasoningVerbosity"]; given && (json.Unmarshal(raw, &v) != nil || !slices.Contains(verbosities, v)) {
		p.add("/configurable/reasoningVerbosity", "want %s", strings.Join(verbosities, ", "))
	}
	checkObjects(p, c)
}

// verbosities are the values of reasoningVerbosity (OpenWOP host contract §2.3).
var verbosities = []string{"full", "summary", "off"}

// checkObjects checks the reserved keys that are objects.
func checkObjects(p *problems, c map[string]json.RawMessage) {
	if raw, given := c["promptOverrides"]; given {
		var m map[string]string
		if json.Unmarshal(raw, &m) != nil || m == nil {
			p.add("/configurable/promptOverrides", "want an object of strings")
		}
	}
	if raw, given := c["mockProvider"]; given {
		checkMock(p, raw)
	}
	if raw, given := c["ai"]; given {
		var m map[string]string
		if json.Unmarshal(raw, &m) != nil || m == nil {
			p.add("/configurable/ai", "want an object of strings: provider, model, credentialRef")
		}
	}
}

func checkMock(p *problems, raw json.RawMessage) {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || m == nil {
		p.add("/configurable/mockProvider", "want an object {id, config?}")
		return
	}
	for name := range m {
		if name != "id" && name != "config" {
			p.add("/configurable/mockProvider/"+name, "unknown member; known are id, config")
		}
	}
	var id string
	if json.Unmarshal(m["id"], &id) != nil || id == "" || len(id) > 128 {
		p.add("/configurable/mockProvider/id", "want a string of 1 to 128 characters")
	}
}

// checkUnsupported rejects members of capabilities that this host does not have.
func checkUnsupported(req *openwopv1.CreateRunRequest) error {
	switch {
	case req.Mode != nil, req.EvalSuiteRef != nil, req.AgentId != nil:
		return fault.New(fault.CapabilityNotProvided, "mode, evalSuiteRef and agentId belong to capabilities this host does not provide")
	case req.Residency != nil:
		return fault.New(fault.ResidencyUnavailable, "/residency: this host offers no choice of region")
	}
	return nil
}
