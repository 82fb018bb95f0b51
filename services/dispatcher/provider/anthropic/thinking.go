package anthropic

import (
	"strings"

	"github.com/anthropics/anthropic-sdk-go"

	"waybill.dev/waybill/services/dispatcher/provider"
)

const (
	// leastBudget is the least the vendor takes for thinking.
	leastBudget = 1024
	// mostBudget bounds what is spent on thoughts that are only shown.
	mostBudget = 16_384
	// leastTopP is the least the vendor takes beside thinking.
	leastTopP = 0.95
)

// thinkingOf asks for thoughts where the request wants them and nothing speaks
// against it: thoughts are shown, the rest of the request decides the answer. So
// they are left out beside a forced tool, beside sampling that the vendor excludes
// with them, and where they would leave the answer no room.
func thinkingOf(req provider.Request) anthropic.ThinkingConfigParamUnion {
	var none anthropic.ThinkingConfigParamUnion
	switch {
	case !req.Thoughts, viaTool(req),
		req.Temperature != nil && *req.Temperature != 1,
		req.TopP != nil && *req.TopP < leastTopP,
		maxTokens(req) < 2*leastBudget:
		return none
	}
	switch styleOf(req.Model) {
	case budgeted:
		// Half, since the thoughts count towards the same bound as the answer.
		budget := min(max(maxTokens(req)/2, leastBudget), mostBudget)
		return anthropic.ThinkingConfigParamUnion{OfEnabled: &anthropic.ThinkingConfigEnabledParam{BudgetTokens: budget}}
	case adaptive:
		return anthropic.ThinkingConfigParamUnion{OfAdaptive: &anthropic.ThinkingConfigAdaptiveParam{
			// Some models keep their thoughts to themselves unless asked.
			Display: anthropic.ThinkingConfigAdaptiveDisplaySummarized,
		}}
	default:
		return none
	}
}

// style is how a model is asked to think.
type style int

const (
	// thoughtless models do not think aloud.
	thoughtless style = iota
	// budgeted models think as much as they are given.
	budgeted
	// adaptive models decide themselves.
	adaptive
)

// styles are those of the models that are no longer made; newer ones are adaptive.
var styles = []struct {
	prefix string
	style  style
}{
	{"claude-2", thoughtless},
	{"claude-instant", thoughtless},
	{"claude-3-7", budgeted},
	{"claude-3", thoughtless},
	{"claude-opus-4-5", budgeted},
	{"claude-opus-4-1", budgeted},
	{"claude-opus-4-0", budgeted},
	{"claude-opus-4-2025", budgeted},
	{"claude-sonnet-4-5", budgeted},
	{"claude-sonnet-4-0", budgeted},
	{"claude-sonnet-4-2025", budgeted},
	{"claude-haiku-4-5", budgeted},
}

func styleOf(model string) style {
	for _, s := range styles {
		if strings.HasPrefix(model, s.prefix) {
			return s.style
		}
	}
	return adaptive
}
