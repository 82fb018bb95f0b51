package render

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/itchyny/gojq"
)

// CompileQuery reads --query, an expression of jq.
func CompileQuery(text string) (func(doc []byte, each func([]byte) error) error, error) {
	q, err := gojq.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--query: %w", err)
	}
	code, err := gojq.Compile(q) // no input function, no modules, no environment
	if err != nil {
		return nil, fmt.Errorf("--query: %w", err)
	}
	return func(doc []byte, each func([]byte) error) error {
		d := json.NewDecoder(bytes.NewReader(doc))
		d.UseNumber() // large numbers stay what they are
		var v any
		if err := d.Decode(&v); err != nil {
			return err
		}
		for results := code.Run(v); ; {
			out, ok := results.Next()
			if !ok {
				return nil
			}
			if err, bad := out.(error); bad {
				return fmt.Errorf("--query: %w", err)
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
