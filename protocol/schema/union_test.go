package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
)

// OpenWOP envelope contract §4.2: the branch is found by equality on one member, regardless of the
// number of branches.
func TestValidate_TakesManyItemsOfAWideUnion(t *testing.T) {
	t.Parallel()
	const variants, items = 60, 2000
	branches := make([]string, variants)
	definitions := make([]string, variants)
	for i := range variants {
		branches[i] = fmt.Sprintf(`{"$ref":"#/$defs/b%d"}`, i)
		definitions[i] = fmt.Sprintf(`"b%d":{"type":"object","properties":{"kind":{"type":"string","enum":["k%d"]},"id":{"type":"string"}},"required":["kind","id"],"additionalProperties":false}`, i, i)
	}
	list := func(last string) []byte {
		return []byte("[" + strings.Repeat(fmt.Sprintf(`{"kind":"k%d","id":"x"},`, variants-1), items) + last + "]")
	}
	for _, union := range []string{"anyOf", "oneOf"} {
		s := compile(t, fmt.Sprintf(`{"items":{%q:[%s]},"$defs":{%s}}`, union, strings.Join(branches, ","), strings.Join(definitions, ",")))
		require.Empty(t, s.Validate(list(`{"kind":"k0","id":"x"}`)), union)
		require.NotEmpty(t, s.Validate(list(`{"kind":"k0","id":1}`)), union)

		wrong := s.Validate([]byte(`[{"kind":"k3","id":1}]`))
		require.Len(t, wrong, 1)
		require.Equal(t, "/0/id", wrong[0].InstancePath)
		require.Equal(t, "type", wrong[0].Keyword)
		wrong = s.Validate([]byte(`[{"kind":"other","id":"x"}]`))
		require.Len(t, wrong, 1)
		require.Equal(t, "enum", wrong[0].Keyword)
		for _, v := range s.Validate([]byte(`[{"id":"x"}]`)) {
			require.NotEqual(t, schema.KeywordBudget, v.Keyword)
		}
	}
}
