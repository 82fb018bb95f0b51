package strictjson

import (
	"fmt"

	"waybill.dev/waybill/protocol/jsonpointer"
)

// The rules of an Error. Programs switch on these, never on the reason.
const (
	// RuleSize: the document has more bytes than Limits.MaxBytes.
	RuleSize = "size"
	// RuleDepth: containers are nested deeper than Limits.MaxDepth.
	RuleDepth = "depth"
	// RuleSyntax: not exactly one JSON value.
	RuleSyntax = "syntax"
	// RuleEncoding: invalid UTF-8, or a lone surrogate.
	RuleEncoding = "encoding"
	// RuleDuplicate: an object has two members of one name.
	RuleDuplicate = "duplicate-member"
	// RuleUnknown: the target of Decode does not have the member.
	RuleUnknown = "unknown-member"
	// RuleType: the target of Decode cannot hold the value.
	RuleType = "type"
)

// maxShownPath keeps a hostile member name from filling a log line, in bytes.
const maxShownPath = 256

// Error describes a problem of a document, its place, and what is allowed.
type Error struct {
	// Path is a JSON pointer (RFC 6901) to the offending value or member; the
	// empty string is the whole document.
	Path string
	// Offset is the byte at which reading stopped, counted from 0.
	Offset int
	// Rule is one of the Rule constants.
	Rule string
	// Reason is a sentence for people. It never quotes a value of the document.
	Reason string
	// Known are the members that are allowed instead of an unknown one.
	Known []string
}

// Error returns path and reason. The path is quoted and shortened, because the sender chose its
// names.
func (e *Error) Error() string {
	path := e.Path
	if len(path) > maxShownPath {
		path = path[:maxShownPath] + "..."
	}
	return fmt.Sprintf("json at %q, byte %d: %s", path, e.Offset, e.Reason)
}

// under returns e with its path below the given member name or index.
func (e *Error) under(token string) *Error {
	e.Path = "/" + jsonpointer.Escape(token) + e.Path
	return e
}
