// Package document reads files named in arguments.
package document

import (
	"io"
	"os"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/services/acceptor/accept"
)

// maxDocument is the maximum size of a file. It fits an envelope with the largest accepted asset,
// and exceeds the limit on schemas.
const maxDocument = accept.DefaultMaxMediaBytes + 4<<20

// Read reads a file, or standard input for "-".
func Read(stdin io.Reader, name string) ([]byte, error) {
	from := stdin
	if name != "-" {
		f, err := os.Open(name) //nolint:gosec // G304: the user names the file
		if err != nil {
			return nil, exit.With(exit.Usage, err)
		}
		defer func() { _ = f.Close() }()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, exit.Usagef("%s is a folder without a %s; want files or the folder of one pack", name, pack.File)
		}
		from = f
	}
	doc, err := io.ReadAll(io.LimitReader(from, maxDocument+1))
	if err != nil {
		return nil, exit.Usagef("read %s: %w", name, err)
	}
	if len(doc) > maxDocument {
		return nil, exit.Usagef("%s exceeds the limit of %d bytes", name, maxDocument)
	}
	return doc, nil
}
