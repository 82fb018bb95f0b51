// Package strictjson reads JSON from outside: one bounded pass that rejects what a lenient reader
// would silently repair or lose.
//
// Go's encoding/json replaces invalid UTF-8 and lone surrogates, keeps the last of two members of
// one name, matches member names without regard to case, and accepts null for any type. Each of
// these lets two readers of one document see two different things. Check and Decode reject them and
// report the position.
//
//	Check   validates syntax and limits
//	Decode  also validates the shape of a Go value, member for member
//	Same    compares two documents by value
//	HasText reports whether a document could hold a secret
//
// Cursor, Each and Read are for documents that were accepted earlier, or that the host does not
// validate, such as a vendor's response. They read the requested members and skip the rest.
//
// Depth and size are limited before anything is decoded (OpenWOP envelope contract §26 case 5). The
// shapes of client documents are closed (OpenWOP host contract §0, closure rule).
package strictjson
