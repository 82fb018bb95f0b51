// Package settings reads the JSON files of operators and reports all errors of a file, each with its
// path and what is allowed there.
package settings

import (
	"fmt"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/suggest"
)

// File collects the errors of one file.
type File struct {
	doc   []byte
	found strictjson.Problems
	// unread: the document is not JSON, and nothing is known of its members.
	unread bool
}

// Read decodes a document into the value that v points to. Members that do not fit keep their value.
func Read(doc []byte, v any) *File {
	f := &File{doc: doc}
	for _, e := range strictjson.DecodeAll(doc, strictjson.Limits{}, v) {
		f.unread = f.unread || e.Rule != strictjson.RuleType && e.Rule != strictjson.RuleUnknown
		f.found = append(f.found, strictjson.Problem{Path: e.Path, Message: e.Reason + meant(e)})
	}
	return f
}

// meant suggests a known member that is close to an unknown one.
func meant(e *strictjson.Error) string {
	name := e.Path[strings.LastIndexByte(e.Path, '/')+1:]
	if near := suggest.Names(name, e.Known, 1); len(name) > 2 && len(near) > 0 { // shorter ones are close to anything
		return "; did you mean " + near[0] + "?"
	}
	return ""
}

// Wrong adds an error of the value at a path, unless one is known of it or of what it is part of.
func (f *File) Wrong(path, format string, args ...any) {
	if f.unread {
		return
	}
	for _, p := range f.found {
		if p.Path == path || strings.HasPrefix(path, p.Path+"/") {
			return
		}
	}
	f.found = append(f.found, strictjson.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// Range adds an error if the value at a path is below low or above high.
func (f *File) Range(path string, value, low, high int64) {
	if value < low || value > high {
		f.Wrong(path, "%d: want %d to %d", value, low, high)
	}
}

// Err is nil if the file is valid, and otherwise all its errors with their places, as
// strictjson.Problems.
func (f *File) Err() error {
	if len(f.found) == 0 {
		return nil
	}
	return f.found.In(f.doc)
}

// Path is the JSON pointer of a member.
func Path(parent, member string) string {
	return parent + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(member)
}
