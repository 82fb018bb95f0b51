// Package redact removes secrets from texts and JSON documents.
//
//	Compile  secrets -> *Scrubber   once per set of secrets
//	Text     one text               every occurrence becomes [REDACTED:<secretId>]
//	JSON     one document           every string value and object key, recursively
//	Stream   a text in pieces       finds a secret that is split over pieces, too
//
// # Two layers
//
// A text passes two layers. Both read it once, byte by byte, and emit a byte only when no
// match can cover it any more. So a stream has the same result as the whole text.
//
// The first layer (knownScan) finds registered values and their encodings, by substring
// search: the leftmost match first, then the longest. Values shorter than MinLength are
// not matched (OpenWOP envelope contract §11, OpenWOP host contract §10.3). The second
// layer (shapeScan) finds text that looks like a secret, by the rules of shapes.yaml.
//
// # Known values
//
// An Aho-Corasick automaton (automaton) finds all encodings of all values (encodings.go) in
// the text. Encoders can also change single characters, so three further automata search
// views of the text (views.go):
//
//	viewUnescaped  escapes of JSON, URLs and HTML undone
//	viewBase64     and line breaks in base64 removed
//	viewHex        and letters in lower case
//
// A character before or after a value can look like part of an escape: %ab is one byte, or
// a percent sign before a value that starts with ab. Then the view is read in both ways.
// Each way is a reading with its own automaton state (readings.go). A reading ends when it
// has the same state as the primary one.
//
// startFilter skips most of a text in which no pattern starts, and a whole text is searched
// in views only near the places where a view differs from it (viewSet.scanAll).
//
// # Shapes
//
// A rule has words, and a pattern or a reader function. Each word in the text is a
// candidate (rule_words.go), and its rule decides it: by a restricted regular expression
// (rule_pattern.go), or in code (rule_readers.go, assignment.go, key_block.go). If the rule
// needs more text, the scan waits; rules limit how much they need. heuristics.go decides
// whether a value looks random. A second shapeScan reads the text with \uXXXX decoded
// (decoded_text.go).
//
// A JSON document is walked without decoding it, so unchanged parts keep their bytes
// (json.go). Names of members select the rule for their values.
//
// The package is pure: no I/O, no clock. A compiled Scrubber never changes.
package redact
