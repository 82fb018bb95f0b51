package lint

import (
	"encoding/json"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
)

// roles are the roles of messages.
var roles = []string{"system", "user", "assistant", "tool"}

// checkMessages checks a fixed value of the port messages.
func (l *linter) checkMessages(m modelNode) {
	raw := static(m.n, "messages")
	var list []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if strictjson.KindOf(raw) != "an array" || l.leads(m.n.ID, "messages") {
		return
	}
	at := m.at + "/inputs/messages/value"
	if strictjson.Read(raw, &list) != nil {
		l.problem(at, workflow.RuleValueType, "want an array of {role, content}")
		return
	}
	if len(list) == 0 && m.cfg.Prompt == "" && len(m.templates) == 0 && len(l.ports[m.i]) == 1 {
		l.problem(at, RulePrompt, "has no message, so the model would be called with nothing; add a message, or prompt")
	}
	for k, g := range list {
		path := fmt.Sprintf("%s/%d", at, k)
		if !slices.Contains(roles, g.Role) {
			l.problem(path+"/role", "enum", "the roles are system, user, assistant and tool")
		}
		if g.Content == nil && g.Role != "assistant" {
			l.problem(path, workflow.RuleRequired, "the message has no content; set content")
		}
	}
}
