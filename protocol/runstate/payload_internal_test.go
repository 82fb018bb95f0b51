package runstate

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every member is read into its own field.
func TestPayload_ReadsAllMembers(t *testing.T) {
	t.Parallel()
	var p payload
	kind := reflect.TypeOf(p)
	for i := range kind.NumField() {
		name := kind.Field(i).Tag.Get("json")
		if name == "outputs" {
			continue // a slice of the document
		}
		require.Same(t, reflect.ValueOf(&p).Elem().Field(i).Addr().Interface(), p.member(name), name)
	}
	require.Nil(t, p.member("somethingElse"))
}

// The result equals that of encoding/json for members in their exact case.
func FuzzPayload(f *testing.F) {
	for _, doc := range []string{
		`{"nodeId":"n","outputs":{"a":1,"b":{"c":[]}},"attempt":3,"delayMs":5,"costEstimateUsd":0.5}`, `{"outputs":null,"next":null,"error":null}`,
		`{"error":{"code":"c","message":"\ud800","details":{"reason":"executor_lost"}},"attempt":"x","nodeId":7}`, `{"outputs":{"a":1,"a":2}}`, `{"outputs":7}`, `[]`, `{"answer":{"size":2,"with":[1]}}`,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var members map[string]json.RawMessage
		if json.Unmarshal(doc, &members) != nil {
			return // not a payload
		}
		exact := map[string]json.RawMessage{} // names in another case are different names
		for name, value := range members {
			if name == "outputs" || new(payload).member(name) != nil {
				exact[name] = value
			}
		}
		plain, err := json.Marshal(exact)
		require.NoError(t, err)
		var want, got payload
		_ = json.Unmarshal(plain, &want)
		got.read(plain)
		require.Equal(t, want, got)
		ports := map[string]json.RawMessage(nil)
		_ = json.Unmarshal(want.Outputs, &ports)
		require.Equal(t, ports, got.outputs())
	})
}
