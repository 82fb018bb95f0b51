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

// CompileQuery reads --query, an expression of jq. It ends with ctx: an expression may have
// no end of its own.
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

// failed is the error of an expression that the document does not fit.
func failed(err error) error {
	var halt *gojq.HaltError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &halt) && halt.Value() == nil:
		return nil // it says itself that this is its end
	default:
		return exit.Usagef("--query: %w", err)
	}
}

// place is where an expression cannot be read on.
func place(text string, err error) string {
	var wrong *gojq.ParseError
	if !errors.As(err, &wrong) {
		return ""
	}
	at := min(max(wrong.Offset-len(wrong.Token), 0), len(text))
	return fmt.Sprintf("at character %d, behind %q: ", utf8.RuneCountInString(text[:at])+1, tail(text[:at]))
}

// tail is the end of a text, as much as tells where it is.
func tail(text string) string {
	const most = 20
	if r := []rune(text); len(r) > most {
		return "…" + string(r[len(r)-most:])
	}
	return text
}

// decode reads a document; large numbers stay what they are.
func decode(doc []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
