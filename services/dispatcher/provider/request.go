package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// roles are the roles of a message (OpenWOP host contract §7.3).
var roles = []string{"system", "user", "assistant", "tool"}

// Validate returns problems that every vendor rejects. Adapters call it first, so that all of them
// reject a bad request alike. The result is nil or an *Error of CodeInvalidRequest that names the
// member, not its value.
func (r Request) Validate() error {
	switch {
	case r.Model == "":
		return invalid("model: name one")
	case r.System == "" && len(r.Messages) == 0:
		return invalid("messages: at least one is needed, or a system text")
	case r.MaxTokens < 0:
		return invalid("maxTokens: %d; want 1 or more, or 0 for the model's own limit", r.MaxTokens)
	case len(r.Schema) > 0 && !json.Valid(r.Schema):
		return &Error{Code: CodeSchemaInvalid, Message: "schema: not a JSON document"}
	}
	for i, m := range r.Messages {
		if !slices.Contains(roles, m.Role) {
			return invalid("messages[%d].role: %q; want one of %v", i, m.Role, roles)
		}
		if !isContent(m.Content) {
			return invalid("messages[%d].content: want a JSON string or an array of blocks", i)
		}
	}
	return nil
}

func isContent(raw json.RawMessage) bool {
	t := bytes.TrimLeft(raw, " \t\r\n")
	return len(t) > 0 && (t[0] == '"' || t[0] == '[') && json.Valid(raw)
}

func invalid(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
}
