package anthropic

import (
	"slices"
	"strings"
)

const (
	leastBudget = 1024
	leastTopP   = 0.95
)

// thoughts checks that thinking agrees with the rest of the request.
func (r request) thoughts() *Reply {
	t := r.Thinking
	if t == nil {
		return nil
	}
	if refusal := t.shape(r); refusal != nil {
		return refusal
	}
	if !r.thinks() {
		return nil
	}
	switch {
	case !slices.Contains([]string{"", "summarized", "omitted"}, t.Display):
		return bad("thinking.display: Input should be 'summarized' or 'omitted'")
	case r.ToolChoice != nil && (r.ToolChoice.Type == "tool" || r.ToolChoice.Type == "any"):
		return bad("Thinking may not be enabled when tool_choice forces tool use.")
	case r.Temperature != nil && *r.Temperature != 1:
		return bad("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.")
	case r.TopP != nil && *r.TopP < leastTopP:
		return bad("`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled or in adaptive mode.")
	case r.TopK != nil:
		return bad("`top_k` must be unset when thinking is enabled or in adaptive mode.")
	default:
		return nil
	}
}

func (t thinking) shape(r request) *Reply {
	switch t.Type {
	case "enabled":
		switch {
		case adaptiveOnly(r.Model):
			return bad("\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.")
		case t.Budget == nil:
			return bad("thinking.enabled.budget_tokens: Field required")
		case *t.Budget < leastBudget:
			return bad("thinking.enabled.budget_tokens: Input should be greater than or equal to %d", leastBudget)
		case *t.Budget >= r.MaxTokens:
			return bad("`max_tokens` must be greater than `thinking.budget_tokens`.")
		}
	case "adaptive":
		switch {
		case !canAdapt(r.Model):
			return bad("adaptive thinking is not supported on this model")
		case t.Budget != nil:
			return bad("thinking.adaptive.budget_tokens: Extra inputs are not permitted")
		}
	case "disabled", "between_tools":
	default:
		return bad("thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'adaptive', 'between_tools', 'disabled', 'enabled'", t.Type)
	}
	return nil
}

// adaptiveOnly reports whether a model rejects a thinking budget.
func adaptiveOnly(model string) bool {
	return canAdapt(model) && model != "claude-opus-4-6" && model != "claude-sonnet-4-6"
}

// canAdapt reports whether a model chooses its own thinking budget: all models since version 4.6.
func canAdapt(model string) bool {
	for _, old := range []string{
		"claude-3", "claude-haiku-4-5", "claude-sonnet-4-5", "claude-sonnet-4-0", "claude-sonnet-4-2025",
		"claude-opus-4-5", "claude-opus-4-1", "claude-opus-4-0", "claude-opus-4-2025",
	} {
		if strings.HasPrefix(model, old) {
			return false
		}
	}
	return true
}
