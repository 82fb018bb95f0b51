package lint

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// gateConfig are the members of a gate that are checked together.
type gateConfig struct {
	Actions   []string        `json:"actions"`
	Required  int             `json:"requiredApprovals"`
	List      []string        `json:"approversList"`
	Groups    []string        `json:"approverGroupRefs"`
	Roles     []string        `json:"approverRoleRefs"`
	Audience  json.RawMessage `json:"audience"`
	Policy    string          `json:"rejectionPolicy"`
	Resume    json.RawMessage `json:"resumeSchema"`
	Questions []struct {
		ID string `json:"id"`
	} `json:"questions"`
}

// checkGate finds gates that no answer completes, and warns about members without effect.
func (l *linter) checkGate(n *workflow.Node, t node.Type, at string) {
	if !isGate(t) {
		return
	}
	if retries, own := n.MaxRetries(); own && retries > 0 {
		l.warn(at+"/settings", RuleNoEffect, "a gate waits for one answer, so nothing is retried; remove the retries")
	}
	var c gateConfig
	if strictjson.Read(t.Configure(n.Config), &c) != nil {
		return
	}
	switch t.Executes() {
	case interrupt.TypeApprovalGate:
		l.checkApproval(c, at+"/config")
	case interrupt.TypeClarificationGate:
		l.checkClarification(c, at+"/config/resumeSchema")
	}
}

func (l *linter) checkApproval(c gateConfig, at string) {
	if len(c.Actions) == 1 && c.Actions[0] == string(interrupt.Reject) {
		l.warn(at+"/actions", node.RuleConfig, "the approval can only be rejected, so the node always fails; add accept")
	}
	for k, who := range c.List {
		if slices.Contains(c.List[:k], who) {
			l.warn(fmt.Sprintf("%s/approversList/%d", at, k), workflow.RuleUnique, "%s is there twice, and has one vote; remove one", who)
		}
	}
	if c.List != nil && len(c.List)+len(c.Groups)+len(c.Roles) == 0 {
		l.warn(at+"/approversList", RuleNoEffect, "is empty, so all callers who may answer can approve; name approvers, or remove it")
	}
	if isGiven(c.Audience) && len(c.List)+len(c.Groups)+len(c.Roles) == 0 {
		l.warn(at+"/audience", RuleNoEffect, "lists people to notify, and does not limit who answers; name approvers in approversList, approverGroupRefs or approverRoleRefs, too")
	}
	if c.Policy != "" && c.Required <= 1 {
		l.warn(at+"/rejectionPolicy", RuleNoEffect, "one answer decides; set requiredApprovals to at least 2, or remove it")
	}
	if s, ok := compiled(c.Resume); ok && !slices.ContainsFunc(c.Actions, func(a string) bool { return allowsAction(s, a) }) {
		l.problem(at+"/resumeSchema", workflow.RuleSchema, "allows no answer: an answer is an object with the member action; allow it, or remove the schema")
	}
}

// checkClarification finds schemas that exclude the object of the answers.
func (l *linter) checkClarification(c gateConfig, path string) {
	s, ok := compiled(c.Resume)
	if !ok || len(c.Questions) == 0 {
		return
	}
	answers := map[string]json.RawMessage{}
	for _, q := range c.Questions {
		answers[q.ID] = json.RawMessage(`null`)
	}
	value := strictjson.RenderPlain(map[string]any{"answers": answers})
	if excludes(s, value, "/answers", false) {
		l.problem(path, workflow.RuleSchema, "allows no answer: an answer is an object with the member answers, which maps the ids of questions to values; allow it, or remove the schema")
	}
}

// compiled compiles a schema; ok is false without one, and for one that does not compile.
func compiled(doc json.RawMessage) (s *schema.Schema, ok bool) {
	if !isGiven(doc) {
		return nil, false
	}
	s, err := schema.Compile("resumeSchema", doc)
	return s, err == nil
}

// allowsAction reports whether a schema may allow an answer with an action.
func allowsAction(s *schema.Schema, action string) bool {
	return !excludes(s, strictjson.RenderPlain(map[string]string{"action": action}), "/action", true)
}

// excludes reports whether a schema rejects a value and every value with more members: the value is no
// object, or its member is not allowed. exact means that the member's value counts, too. Alternatives of the
// schema are left out.
func excludes(s *schema.Schema, value json.RawMessage, member string, exact bool) bool {
	return slices.ContainsFunc(s.Validate(value), func(v schema.Violation) bool {
		if alternatives.MatchString(v.SchemaPath) {
			return false
		}
		below := v.InstancePath == member || strings.HasPrefix(v.InstancePath, member+"/")
		switch v.Keyword {
		case "type":
			return v.InstancePath == "" || v.InstancePath == member
		case "additionalProperties", "unevaluatedProperties", "propertyNames":
			return v.InstancePath == "" || below
		case "enum", "const":
			return exact && v.InstancePath == member
		}
		return false
	})
}

// alternatives are keywords below which a violation is no reason to reject a value.
var alternatives = regexp.MustCompile(`/(anyOf|oneOf|not|if|then|else|contains)(/|$)`)
