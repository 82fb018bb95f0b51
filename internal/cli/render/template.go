package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/template"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/protocol/strictjson"
)

// CompileTemplate parses --template, a text/template. The returned function executes it with a
// document and writes the result to out as text: control characters other than newline and tab
// are escaped.
func CompileTemplate(text string, out io.Writer) (func(doc []byte, each func([]byte) error) error, error) {
	t, err := template.New("--template").Option("missingkey=zero").Funcs(templateFuncs).Parse(text)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	return func(doc []byte, _ func([]byte) error) error {
		v, err := decode(doc)
		if err != nil {
			return err
		}
		var b strings.Builder
		if err := t.Execute(&b, templateValue(v)); err != nil {
			return exit.With(exit.Usage, err)
		}
		for line := range strings.Lines(b.String()) {
			cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			for i, cell := range cells {
				cells[i] = term.Clean(cell)
			}
			if _, err := fmt.Fprintln(out, strings.Join(cells, "\t")); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// templateFuncs are the functions beyond text/template's own. Its comparisons reject an integer
// with a fraction, such as {{gt .cost 1}}.
var templateFuncs = template.FuncMap{
	"json": func(v any) string { return string(strictjson.RenderPlain(v)) },
	"lt":   func(a, b any) (bool, error) { c, err := compareValues(a, b); return c < 0, err },
	"le":   func(a, b any) (bool, error) { c, err := compareValues(a, b); return c <= 0, err },
	"gt":   func(a, b any) (bool, error) { c, err := compareValues(a, b); return c > 0, err },
	"ge":   func(a, b any) (bool, error) { c, err := compareValues(a, b); return c >= 0, err },
	"eq": func(a any, others ...any) bool {
		for _, b := range others {
			if c, err := compareValues(a, b); err == nil && c == 0 {
				return true
			}
		}
		return false
	},
	"ne": func(a, b any) bool { c, err := compareValues(a, b); return err != nil || c != 0 },
}

// integer is a whole number of a document. It formats as a float if the verb requires one.
type integer int64

// Format implements fmt.Formatter.
func (n integer) Format(f fmt.State, verb rune) {
	var v any = int64(n)
	if strings.ContainsRune("eEfFgG", verb) {
		v = float64(n)
	}
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), v) // f reports its own errors
}

// templateValue converts the numbers of a decoded document: to integer, or to float64 if there is a
// fraction. An integer that is too large for int64 stays the text that was sent.
func templateValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = templateValue(e)
		}
	case []any:
		for i, e := range v {
			v[i] = templateValue(e)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return integer(n)
		}
		if x, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return x
		}
	}
	return v
}

// compareValues orders two numbers or two strings.
func compareValues(a, b any) (int, error) {
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			return cmp.Compare(x, y), nil
		}
	}
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	switch {
	case a == nil && b == nil, va.Kind() == reflect.Bool && vb.Kind() == reflect.Bool && va.Bool() == vb.Bool():
		return 0, nil
	case va.CanInt() && vb.CanInt():
		return cmp.Compare(va.Int(), vb.Int()), nil
	}
	x, okA := toFloat(va)
	y, okB := toFloat(vb)
	if !okA || !okB {
		return 0, fmt.Errorf("cannot compare %T with %T", a, b)
	}
	return cmp.Compare(x, y), nil
}

func toFloat(v reflect.Value) (float64, bool) {
	switch {
	case v.IsValid() && v.Type() == reflect.TypeFor[json.Number](): // beyond int64
		x, err := json.Number(v.String()).Float64()
		return x, err == nil
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanFloat():
		return v.Float(), true
	default:
		return 0, false
	}
}
