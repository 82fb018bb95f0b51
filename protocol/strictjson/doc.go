// Package strictjson is the intake for JSON from outside: one bounded pass that
// refuses what a lenient reader would silently repair or lose.
//
// Go's encoding/json replaces invalid UTF-8 and lone surrogates, keeps the last
// of two members of one name, matches member names without regard to case, and
// takes null for anything. Each of these lets two readers of one document see
// two different things. Check and Decode refuse them, with the place.
//
//	Check   is the document sound and within bounds?
//	Decode  does it also have the shape of a Go value, member for member?
//	Same    does it say the same as another?
//	HasText could it hold a secret at all?
//
// Cursor, Each and Read are for documents that were let in before, or that are not the host's to
// judge, such as a vendor's: they read what is asked for and pass over the rest.
//
// Depth and size are bounded before anything is decoded (OpenWOP envelope
// contract §26 case 5); shapes a client sends are closed (OpenWOP host contract
// §0, closure rule).
package strictjson
