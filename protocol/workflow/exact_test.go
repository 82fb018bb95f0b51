package workflow_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/workflow"
)

// The shape check matches members by exact name, encoding/json in any case. A duplicate of a member
// in another case, anywhere in a definition, is rejected or has no effect.
func TestParse_MatchesExactMemberNames(t *testing.T) {
	t.Parallel()
	var doc any
	require.NoError(t, json.Unmarshal([]byte(rich), &doc))
	want := meaning(t, []byte(rich), "")
	taken := 0
	eachObject(doc, func(o map[string]any) {
		for _, name := range slices.Sorted(maps.Keys(o)) {
			twin := strings.ToUpper(name)
			if _, there := o[twin]; there {
				continue
			}
			o[twin] = unlike(o[name])
			raw, err := json.Marshal(doc)
			require.NoError(t, err)
			if got := meaning(t, raw, twin); got != nil {
				taken++
				require.Equal(t, want, got, "%s with %s", twin, name)
			}
			delete(o, twin)
		}
	})
	require.Positive(t, taken, "some objects are open")
}

// meaning returns the parsed definition without members named twin: raw documents keep theirs. It
// is nil if Parse rejects it.
func meaning(t *testing.T, raw []byte, twin string) any {
	t.Helper()
	d, _ := workflow.Parse(raw)
	if d == nil {
		return nil
	}
	b, err := json.Marshal(d)
	require.NoError(t, err)
	var read any
	require.NoError(t, json.Unmarshal(b, &read))
	if twin != "" {
		eachObject(read, func(o map[string]any) { delete(o, twin) })
	}
	return read
}

// eachObject visits every object of a document, inner ones first.
func eachObject(v any, visit func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			eachObject(v[name], visit)
		}
		visit(v)
	case []any:
		for _, item := range v {
			eachObject(item, visit)
		}
	}
}

// unlike returns another value of the same type.
func unlike(v any) any {
	switch v := v.(type) {
	case bool:
		return !v
	case float64:
		return v + 1
	case string:
		return v + "x"
	case []any:
		return []any{}
	case map[string]any:
		return map[string]any{}
	default:
		return fmt.Sprint(v)
	}
}
