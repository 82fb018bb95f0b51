// Package settings reads the JSON files of operators and reports all errors of a file, each with its
// path and what is allowed there.
package settings

import (
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/schema"
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
		f.found = append(f.found, strictjson.Problem{Path: e.Path, Message: e.Reason + f.meant(e)})
	}
	return f
}

// meant suggests a known member that is close to an unknown one.
func (f *File) meant(e *strictjson.Error) string {
	if e.Rule != strictjson.RuleUnknown {
		return ""
	}
	if meant := schema.MeantAt(f.doc, e.Path, e.Known); meant != "" {
		return "; " + strings.TrimSuffix(meant, ";")
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

// Names are the names that a host has of a kind of things, such as providers.
type Names struct {
	Known []string
	// Open means that the host may have others. Of those, only a name that is close to a known one is an
	// error; Doubt gets the rest, unless it is nil.
	Open  bool
	Doubt func(strictjson.Problem)
	// Others is the remedy if the host does have others.
	Others string
}

// Check returns the problem of a name at a path; empty without one. what is the kind of things,
// remedy what to do. The nil Names has all names.
func (n *Names) Check(path, name, what, remedy string) string {
	if n == nil || slices.Contains(n.Known, name) {
		return ""
	}
	message := "no such " + what
	if n.Open {
		message = "no known " + what + " has this id"
	}
	join := "; "
	near := suggest.Names(name, n.Known, 1)
	if len(near) > 0 {
		message += join + "did you mean " + near[0] + "?"
		join = " "
	}
	if !n.Open {
		message += join + "there are " + listOf(n.Known)
		join = "; "
	}
	message += join + remedy
	if n.Open && n.Others != "" {
		message += "; " + n.Others
	}
	if !n.Open || len(near) > 0 {
		return message
	}
	if n.Doubt != nil {
		n.Doubt(strictjson.Problem{Path: path, Message: message})
	}
	return ""
}

// Named adds an error if a host does not have a name.
func (f *File) Named(path, name string, in *Names, what, remedy string) {
	if message := in.Check(path, name, what, remedy); message != "" {
		f.Wrong(path, "%s", message)
	}
}

func listOf(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
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
	return parent + "/" + jsonpointer.Escape(member)
}
