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

// adapter makes values of what strictjson.Value gives, one level at a time: what an
// expression does not look at costs nothing.
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

// number is an int where the text is one that fits, else a double.
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

// mapValue is a map that is walked by its keys. Go's order is random, and a run must
// come to the same on every replay.
type mapValue struct {
	traits.Mapper

	given map[string]any // what it was made of; nil for one that an expression made
}

// listValue is a list that knows what it was made of.
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

// Equal lets maps be compared whichever of them is ordered.
func (m mapValue) Equal(other ref.Val) ref.Val {
	if o, ok := other.(mapValue); ok {
		other = o.Mapper
	}
	return m.Mapper.Equal(other)
}

// ConvertToNative implements ref.Val.
func (m mapValue) ConvertToNative(t reflect.Type) (any, error) { return m.Mapper.ConvertToNative(t) }

// compareKeys sorts by the kind of key, then by value.
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
