// Command gencorpus writes the labelled corpus of the redactor into the current folder, for `go
// generate ./services/redactor/redact/corpus`.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"waybill.dev/waybill/services/redactor/redact/corpus"
)

// perKind is how many lines each kind of text has.
const perKind = 12

func main() {
	if err := write("corpus.jsonl"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(file string) error {
	f, err := os.Create(file) //nolint:gosec // G304: the caller names the file
	if err != nil {
		return err
	}
	enc := json.NewEncoder(f)
	enc.SetEscapeHTML(false)
	for _, l := range corpus.Make(perKind) {
		if err := enc.Encode(l.Cut()); err != nil { //nolint:gosec // G117: generated, not a real secret
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}
