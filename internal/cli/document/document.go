// Package document reads the files that a command line names.
package document

import (
	"fmt"
	"io"
	"os"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/services/acceptor/accept"
)

// maxDocument bounds what is read of one file: an envelope with the largest asset
// that is taken, and more than any schema may be.
const maxDocument = accept.DefaultMaxMediaBytes + 4<<20

// Read reads a file, or standard input for "-".
func Read(stdin io.Reader, name string) ([]byte, error) {
	from := stdin
	if name != "-" {
		f, err := os.Open(name) //nolint:gosec // G304: the user names the file
		if err != nil {
			return nil, fmt.Errorf("%w: %w", exit.ErrUsage, err)
		}
		defer func() { _ = f.Close() }()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, fmt.Errorf("%w: %s is a folder without a %s; name files, or the folder of one pack", exit.ErrUsage, name, pack.File)
		}
		from = f
	}
	doc, err := io.ReadAll(io.LimitReader(from, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("%w: read %s: %w", exit.ErrUsage, name, err)
	}
	if len(doc) > maxDocument {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", exit.ErrUsage, name, maxDocument)
	}
	return doc, nil
}
