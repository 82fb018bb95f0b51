package expr

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// adapter converts parsed JSON to CEL values one level at a time, so that unread members cost
// nothing.
type adapter struct{}

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case json.Number:
		return number(v)
	case map[string]any:
		return mapValue{types.NewStringInterfaceMap(a, v), v}
	case []any:
		return listValue{types.NewDynamicList(a, v), v}
	default:
		return types.DefaultTypeAdapter.NativeToValue(v)
	}
}

// number converts to an int if the text is an integer that fits, else to a double.
func number(n json.Number) ref.Val {
	if i, err := n.Int64(); err == nil && n != "-0" {
		return types.Int(i)
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return types.NewErr("number out of range")
	}
	return types.Double(f)
}

// mapValue is a map that is iterated in key order. Go's order is random, and replays must give the
// same result.
type mapValue struct {
	traits.Mapper

	given map[string]any // its source; nil for a map built by an expression
}

// listValue is a list with its source.
type listValue struct {
	traits.Lister

	given []any
}

// Iterator implements traits.Iterable.
func (m mapValue) Iterator() traits.Iterator {
	var keys []ref.Val
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, compareKeys)
	return types.NewRefValList(adapter{}, keys).Iterator()
}

// Equal compares maps if either is a mapValue.
func (m mapValue) Equal(other ref.Val) ref.Val {
	if o, ok := other.(mapValue); ok {
		other = o.Mapper
	}
	return m.Mapper.Equal(other)
}

// ConvertToNative implements ref.Val.
func (m mapValue) ConvertToNative(t reflect.Type) (any, error) { return m.Mapper.ConvertToNative(t) }

// compareKeys sorts by type, then by value.
func compareKeys(a, b ref.Val) int {
	if x, ok := a.(types.String); ok {
		if y, ok := b.(types.String); ok {
			return strings.Compare(string(x), string(y))
		}
	}
	if c := cmp.Compare(a.Type().TypeName(), b.Type().TypeName()); c != 0 {
		return c
	}
	if x, ok := a.(traits.Comparer); ok {
		if c, ok := x.Compare(b).(types.Int); ok {
			return int(c)
		}
	}
	return 0
}
