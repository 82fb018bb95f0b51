package model

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/node"
)

// The schema of a model node's config and the type that it is read into have the same members. Those of
// prompt templates are read by package prompt.
func TestConfig_HasTheMembersOfItsSchemas(t *testing.T) {
	t.Parallel()
	var read []string
	for f := range reflect.TypeFor[config]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		read = append(read, name)
	}
	read = append(read, "systemPromptRef", "userPromptRef", "additionalPromptRefs", "promptId")
	for id, others := range map[string][]string{
		node.TypeCallPrompt:       {"outputSchema"},
		node.TypeStructuredOutput: {"envelopeType", "turn"},
	} {
		var object struct {
			Properties map[string]struct {
				Ignored bool `json:"x-waybill-ignored"`
			} `json:"properties"`
		}
		require.NoError(t, json.Unmarshal(node.OwnSchema(id).Document(), &object))
		maps.DeleteFunc(object.Properties, func(_ string, p struct {
			Ignored bool `json:"x-waybill-ignored"`
		},
		) bool {
			return p.Ignored
		})
		want := slices.DeleteFunc(slices.Clone(read), func(name string) bool { return slices.Contains(others, name) })
		require.ElementsMatch(t, want, slices.Collect(maps.Keys(object.Properties)), id)
	}
}
