package expr

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// kind returns the JSON kind of a value.
func kind(v ref.Val) string {
	switch v.(type) {
	case types.Null:
		return "null"
	case types.Bool:
		return "a boolean"
	case types.Int, types.Uint, types.Double:
		return "a number"
	case types.String:
		return "a string"
	case traits.Mapper:
		return "an object"
	case traits.Lister:
		return "an array"
	default:
		return "a " + v.Type().TypeName()
	}
}

// render renders a value as JSON with at most most values.
func render(v ref.Val, most int) (json.RawMessage, error) {
	r := renderer{most: most}
	if err := r.value(v); err != nil {
		return nil, err
	}
	return r.b.Bytes(), nil
}

type renderer struct {
	b    bytes.Buffer
	most int
}

func (r *renderer) value(v ref.Val) error {
	if r.most--; r.most < 0 || r.b.Len() > MaxResult {
		return newError("the expression gives more than %d bytes of JSON, or too many values", MaxResult)
	}
	switch v := v.(type) {
	case types.Null:
		r.b.WriteString("null")
	case types.Bool:
		r.b.WriteString(strconv.FormatBool(bool(v)))
	case types.Int:
		r.b.WriteString(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		r.b.WriteString(strconv.FormatUint(uint64(v), 10))
	case types.Double:
		return r.double(float64(v))
	case types.String:
		return r.text(string(v))
	case types.Timestamp:
		return r.text(v.Time.UTC().Format(time.RFC3339Nano))
	case types.Duration:
		return r.text(strconv.FormatFloat(v.Seconds(), 'f', -1, 64) + "s")
	case *types.Err:
		return evalError(v, nil)
	case traits.Mapper:
		return r.object(v)
	case traits.Lister:
		return r.list(v)
	default:
		return newError("the expression gives a %s, which JSON has no form for", v.Type().TypeName())
	}
	return nil
}

func (r *renderer) double(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return newError("the expression gives a number that JSON has no form for: infinite, or none at all")
	}
	b, err := json.Marshal(f)
	if err != nil {
		return newError("the expression gives a number that JSON has no form for")
	}
	r.b.Write(b)
	return nil
}

func (r *renderer) text(s string) error {
	if r.b.Len()+len(s) > MaxResult {
		return newError("the expression gives more than %d bytes of JSON", MaxResult)
	}
	enc := json.NewEncoder(&r.b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return newError("the expression gives a text that JSON has no form for")
	}
	r.b.Truncate(r.b.Len() - 1) // the line feed
	return nil
}

func (r *renderer) list(v traits.Lister) error {
	r.b.WriteByte('[')
	first := true
	for it := v.Iterator(); it.HasNext() == types.True; first = false {
		if !first {
			r.b.WriteByte(',')
		}
		if err := r.value(it.Next()); err != nil {
			return err
		}
	}
	r.b.WriteByte(']')
	return nil
}

func (r *renderer) object(v traits.Mapper) error {
	r.b.WriteByte('{')
	first := true
	for it := v.Iterator(); it.HasNext() == types.True; first = false {
		if !first {
			r.b.WriteByte(',')
		}
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return newError("the expression gives an object with a name that is %s, want strings", kind(key))
		}
		if err := r.text(string(name)); err != nil {
			return err
		}
		r.b.WriteByte(':')
		if err := r.value(v.Get(key)); err != nil {
			return err
		}
	}
	r.b.WriteByte('}')
	return nil
}
