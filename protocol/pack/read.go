package pack

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
)

// Limits of the files that a manifest refers to, in bytes and levels.
const (
	maxFile      = 256 << 10
	maxFileDepth = 64
)

//go:embed contract.schema.json
var contractJSON []byte

// contractSchema is compiled on first use; a test covers the embedded document.
var contractSchema = sync.OnceValue(func() *schema.Schema { return embedded("envelope contract", contractJSON) })

// within converts a path of a manifest for a file system. ok is false if the path leaves the pack,
// or would on another operating system.
func within(ref string) (string, bool) {
	name := strings.TrimPrefix(ref, "./")
	return name, name != "." && fs.ValidPath(name) && !strings.ContainsAny(name, "\\:\x00")
}

// read returns the content of a regular file in the pack, of at most limit bytes. The file system
// confines links; this function only reports the error.
func read(pack fs.FS, name string, limit int64) ([]byte, error) {
	info, err := fs.Stat(pack, name)
	if err != nil {
		return nil, unreadable(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("want a regular file")
	}
	f, err := pack.Open(name)
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { _ = f.Close() }()
	doc, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if int64(len(doc)) > limit {
		return nil, fmt.Errorf("the file is too large; limit is %d bytes", limit)
	}
	return doc, nil
}

// unreadable returns the error without the path, which may reveal the machine's directories.
func unreadable(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the pack has no such file")
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return fmt.Errorf("the file cannot be read within the pack (a link must not lead out of it): %w", err)
}

// readJSON reads a JSON document referred to by another file.
func readJSON(pack fs.FS, by, at, ref string) ([]byte, []Problem) {
	name, ok := within(ref)
	if !ok {
		return nil, []Problem{{by, at, wantPath}}
	}
	doc, err := read(pack, name, maxFile)
	if err != nil {
		return nil, []Problem{{by, at, fmt.Sprintf("%s: %s", ref, err)}}
	}
	if err := strictjson.Check(doc, strictjson.Limits{MaxBytes: maxFile, MaxDepth: maxFileDepth}); err != nil {
		return nil, []Problem{unsound(name, err)}
	}
	return doc, nil
}

// readContract reads an envelope contract (OpenWOP envelope contract §7).
func readContract(pack fs.FS, at, ref string) (*workflow.EnvelopeContract, []Problem) {
	doc, found := readJSON(pack, File, at, ref)
	if found != nil {
		return nil, found
	}
	name, _ := within(ref)
	if wrong := violations(name, contractSchema(), doc); len(wrong) > 0 {
		return nil, wrong
	}
	c := &workflow.EnvelopeContract{}
	if err := strictjson.Read(doc, c); err != nil {
		return nil, []Problem{unsound(name, err)}
	}
	return c, nil
}

// unsound converts an error of strictjson.
func unsound(file string, err error) Problem {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return Problem{file, e.Path, fmt.Sprintf("byte %d: %s", e.Offset, e.Reason)}
	}
	return Problem{file, "", "the document does not have the form it must have"}
}
