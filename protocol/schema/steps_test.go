package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
)

func TestValidate_TakesLongTextsUnderUsualPatterns(t *testing.T) {
	t.Parallel()
	const image = `^data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$`
	tests := map[string]struct{ pattern, text, keyword string }{
		"as many letters as are counted":    {`^[\s\S]{1,1000}$`, strings.Repeat("a", 1000), ""},
		"one letter more than are counted":  {`^[\s\S]{1,1000}$`, strings.Repeat("a", 1001), "pattern"},
		"counted in a group":                {`(^.{0,1000}$)`, strings.Repeat("é", 1000), ""},
		"a head, and a long rest":           {image, "data:image/png;base64," + strings.Repeat("A", 200_000), ""},
		"a head, and a long rest with more": {image, "data:image/png;base64," + strings.Repeat("A", 200_000) + "*", "pattern"},
		"lines": {
			`^(#{1,6} .+|[^#].*|\s*)(\n(#{1,6} .+|[^#].*|\s*))*$`,
			strings.Repeat("a line\n", 8000) + "end", "",
		},
		"letters counted from anywhere":         {`.{1000}$`, strings.Repeat("a", 900), schema.KeywordBudget},
		"letters counted from many places":      {`^a*.{1000}$`, strings.Repeat("a", 900), schema.KeywordBudget},
		"letters counted from many places, too": {`^(a|ab)*(b?.){900}$`, strings.Repeat("a", 900), schema.KeywordBudget},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := json.Marshal(map[string]string{"pattern": tc.pattern})
			require.NoError(t, err)
			text, err := json.Marshal(tc.text)
			require.NoError(t, err)
			keyword := ""
			for _, v := range compile(t, string(doc)).Validate(text) {
				keyword = v.Keyword
			}
			require.Equal(t, tc.keyword, keyword)
		})
	}
}
