package anthropic

import (
	"strings"

	"github.com/anthropics/anthropic-sdk-go"

	"waybill.dev/waybill/services/dispatcher/provider"
)

const (
	// leastBudget is the vendor's minimum budget for thinking.
	leastBudget = 1024
	// mostBudget limits the tokens for thoughts, which are only shown.
	mostBudget = 16_384
	// leastTopP is the vendor's minimum topP with thinking.
	leastTopP = 0.95
)

// thinkingOf enables thoughts if the request wants them and the rest of the request allows it. They
// are left out with a forced tool, with sampling that the vendor excludes, and if they would leave
// too little room for the answer.
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
		// Half, because thoughts count towards the limit of the answer.
		budget := min(max(maxTokens(req)/2, leastBudget), mostBudget)
		return anthropic.ThinkingConfigParamUnion{OfEnabled: &anthropic.ThinkingConfigEnabledParam{BudgetTokens: budget}}
	case adaptive:
		return anthropic.ThinkingConfigParamUnion{OfAdaptive: &anthropic.ThinkingConfigAdaptiveParam{
			// Some models hide their thoughts by default.
			Display: anthropic.ThinkingConfigAdaptiveDisplaySummarized,
		}}
	default:
		return none
	}
}

// style is how thinking is enabled for a model.
type style int

const (
	// thoughtless models have no visible thinking.
	thoughtless style = iota
	// budgeted models use a given budget.
	budgeted
	// adaptive models choose the budget themselves.
	adaptive
)

// styles are the styles of older models; newer ones are adaptive.
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
