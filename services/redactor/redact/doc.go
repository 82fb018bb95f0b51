// Package redact takes known secrets out of texts and JSON documents.
//
//	Compile  secrets -> *Scrubber   once per set of secrets
//	Text     one text               every occurrence becomes [REDACTED:<secretId>]
//	JSON     one document           every string leaf and object key, recursively
//	Stream   a text in pieces       also a secret that is cut over pieces
//
// Matching is plain substring search, leftmost first and longest first, over
// the value itself and its usual encodings (base64, hex, percent, JSON escapes);
// values shorter than MinLength are not matched (OpenWOP envelope contract §11,
// OpenWOP host contract §10.3). The package is pure: no I/O, no clock, and a
// Scrubber never changes once it is compiled.
//
// Scrubber.pass is the only way a byte takes from input to output. It asks one
// layer, the automaton of known values; a layer that recognises secrets by
// their shape belongs there, behind it.
package redact
