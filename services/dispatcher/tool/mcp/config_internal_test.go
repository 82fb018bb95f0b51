package mcp

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/node"
)

// The schema of the config and the type that it is read into have the same members.
func TestConfig_HasTheMembersOfItsSchema(t *testing.T) {
	t.Parallel()
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	require.NoError(t, json.Unmarshal(node.OwnSchema(node.TypeMCPCallTool).Document(), &object))
	require.Len(t, object.Properties, reflect.TypeFor[config]().NumField())
	for f := range reflect.TypeFor[config]().Fields() {
		require.Contains(t, object.Properties, f.Tag.Get("json"))
	}
}
