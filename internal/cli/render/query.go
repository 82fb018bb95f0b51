package render

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"waybill.dev/waybill/internal/cli/exit"
)

// CompileQuery compiles --query, a jq expression. Evaluation stops when ctx ends, because an
// expression can loop forever.
func CompileQuery(ctx context.Context, text string) (func(doc []byte, each func([]byte) error) error, error) {
	q, err := gojq.Parse(text)
	if err != nil {
		return nil, exit.Usagef("--query: %s%w", place(text, err), err)
	}
	code, err := gojq.Compile(q) // no input function, no modules, no environment
	if err != nil {
		return nil, exit.Usagef("--query: %w", err)
	}
	return func(doc []byte, each func([]byte) error) error {
		v, err := decode(doc)
		if err != nil {
			return err
		}
		for results := code.RunWithContext(ctx, v); ; {
			out, ok := results.Next()
			if !ok {
				return nil
			}
			if err, bad := out.(error); bad {
				return failed(err)
			}
			b, err := gojq.Marshal(out)
			if err != nil {
				return err
			}
			if err := each(b); err != nil {
				return err
			}
		}
	}, nil
}

// failed returns the error of an evaluation; nil for halt.
func failed(err error) error {
	var halt *gojq.HaltError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &halt) && halt.Value() == nil:
		return nil // halt without an error
	default:
		return exit.Usagef("--query: %w", err)
	}
}

// place describes the position of a syntax error.
func place(text string, err error) string {
	var wrong *gojq.ParseError
	if !errors.As(err, &wrong) {
		return ""
	}
	at := min(max(wrong.Offset-len(wrong.Token), 0), len(text))
	return fmt.Sprintf("at character %d, after %q: ", utf8.RuneCountInString(text[:at])+1, tail(text[:at]))
}

// tail returns the last characters of a text.
func tail(text string) string {
	const most = 20
	if r := []rune(text); len(r) > most {
		return "…" + string(r[len(r)-most:])
	}
	return text
}

// decode decodes a document without rounding large numbers.
func decode(doc []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
