// Package redact takes secrets out of texts and JSON documents.
//
//	Compile  secrets -> *Scrubber   once per set of secrets
//	Text     one text               every occurrence becomes [REDACTED:<secretId>]
//	JSON     one document           every string leaf and object key, recursively
//	Stream   a text in pieces       also a secret that is cut over pieces
//
// There are two layers. The first (pass) finds known values: plain substring search,
// leftmost first and longest first, over the text as it is and over its views without
// escapes and line breaks; values shorter than MinLength are not matched (OpenWOP
// envelope contract §11, OpenWOP host contract §10.3). The second (scan) finds what
// looks like a secret, by the rules of shapes.yaml. Both read a text once, byte by
// byte, and settle no byte that may still belong to a match, so that a stream
// gives what the whole text gives.
//
// The package is pure: no I/O, no clock, and a Scrubber never changes once it is
// compiled.
package redact
