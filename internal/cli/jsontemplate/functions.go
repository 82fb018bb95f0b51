package jsontemplate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/strictjson"
)

// functions are those that look at all their arguments.
var functions = map[string]func([]any) (any, error){
	"not": exactly(1, func(v []any) (any, error) { return !truth(v[0]), nil }),
	"len": exactly(1, func(v []any) (any, error) { return length(v[0]) }),
	// Text stays as it is: nobody reads it as HTML.
	"json":    exactly(1, func(v []any) (any, error) { return string(strictjson.RenderPlain(v[0])), nil }),
	"print":   func(v []any) (any, error) { return fmt.Sprint(v...), nil },
	"println": func(v []any) (any, error) { return fmt.Sprintln(v...), nil },
	"printf":  printf,
	"index":   index,
	"slice":   slice,
	"eq":      equal,
	"ne":      exactly(2, func(v []any) (any, error) { is, err := same(v[0], v[1]); return !is, err }),
	"lt":      ordered(func(c int) bool { return c < 0 }),
	"le":      ordered(func(c int) bool { return c <= 0 }),
	"gt":      ordered(func(c int) bool { return c > 0 }),
	"ge":      ordered(func(c int) bool { return c >= 0 }),
}

func exactly(n int, f func([]any) (any, error)) func([]any) (any, error) {
	return func(v []any) (any, error) {
		if len(v) != n {
			return nil, fmt.Errorf("want %d arguments, not %d", n, len(v))
		}
		return f(v)
	}
}

// truth is false for what is not there, and for what is empty or zero.
func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	case json.Number:
		return !zero(v)
	default: // of a template
		return v != 0 && v != 0.0
	}
}

func length(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return len(v), nil
	case []any:
		return len(v), nil
	case map[string]any:
		return len(v), nil
	default:
		return nil, fmt.Errorf("%s has no length", kind(v))
	}
}

func printf(v []any) (any, error) {
	if len(v) == 0 {
		return nil, errors.New("want a format")
	}
	format, is := v[0].(string)
	if !is {
		return nil, fmt.Errorf("the format is %s: want a string", kind(v[0]))
	}
	args := slices.Clone(v[1:])
	for i, a := range args {
		if n, is := a.(json.Number); is {
			args[i] = formatted(n)
		}
	}
	return fmt.Sprintf(format, args...), nil
}

// index is an element of an element, and so on.
func index(v []any) (any, error) {
	if len(v) == 0 {
		return nil, errors.New("want a value, and what to look for in it")
	}
	in := v[0]
	for _, key := range v[1:] {
		switch o := in.(type) {
		case nil: // as of a member that is not there
		case map[string]any:
			name, is := key.(string)
			if !is {
				return nil, fmt.Errorf("%s names no member: want a string", kind(key))
			}
			in = o[name]
		case []any:
			i, err := place(key, len(o)-1)
			if err != nil {
				return nil, err
			}
			in = o[i]
		default:
			return nil, fmt.Errorf("%s has no elements", kind(in))
		}
	}
	return in, nil
}

// slice is a part of a string or an array: from, and up to.
func slice(v []any) (any, error) {
	if len(v) == 0 || len(v) > 3 {
		return nil, errors.New("want a value, where its part begins, and where that ends")
	}
	n, err := length(v[0])
	if _, object := v[0].(map[string]any); err != nil || object {
		return nil, fmt.Errorf("%s has no parts", kind(v[0]))
	}
	from, to := 0, n.(int)
	if len(v) > 2 {
		if to, err = place(v[2], to); err != nil {
			return nil, err
		}
	}
	if len(v) > 1 {
		if from, err = place(v[1], to); err != nil {
			return nil, err
		}
	}
	if s, is := v[0].(string); is {
		return s[from:to], nil
	}
	return v[0].([]any)[from:to], nil
}

// place is a position from 0 to last.
func place(v any, last int) (int, error) {
	i, whole := integer(v)
	if !whole {
		return 0, fmt.Errorf("%s is no position: want a whole number", kind(v))
	}
	switch {
	case last < 0:
		return 0, fmt.Errorf("there is no %d: it is empty", i)
	case i < 0 || i > int64(last):
		return 0, fmt.Errorf("there is no %d: want 0 to %d", i, last)
	}
	return int(i), nil
}

// equal reports whether the first is one of the others.
func equal(v []any) (any, error) {
	if len(v) < 2 {
		return nil, errors.New("want two arguments or more")
	}
	for _, other := range v[1:] {
		if is, err := same(v[0], other); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

// same is true of nothing and nothing, and of two numbers, strings or booleans that are equal.
func same(a, b any) (bool, error) {
	if a == nil || b == nil || kind(a) != kind(b) {
		return a == nil && b == nil, nil
	}
	if t, is := a.(bool); is {
		return t == b.(bool), nil
	}
	c, err := compare(a, b)
	return c == 0, err
}

func ordered(is func(int) bool) func([]any) (any, error) {
	return exactly(2, func(v []any) (any, error) {
		c, err := compare(v[0], v[1])
		return is(c), err
	})
}

// compare orders two numbers or two strings.
func compare(a, b any) (int, error) {
	if s, is := a.(string); is {
		if t, is := b.(string); is {
			return cmp.Compare(s, t), nil
		}
	}
	r, number := exact(a)
	q, too := exact(b)
	if number && too {
		return r.Cmp(q), nil
	}
	if kind(a) == "a number" && kind(b) == "a number" {
		return 0, fmt.Errorf("numbers are compared up to an exponent of %d", maxExponent)
	}
	return 0, fmt.Errorf("%s and %s are not compared", kind(a), kind(b))
}
