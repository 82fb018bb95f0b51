package redact

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// JSON redacts every string value and object key of a document, and every number that
// contains a known secret: it becomes the marker, a string. All other bytes stay: numbers of
// any size, key order, white space, escapes. doc is never modified; out is doc itself if
// nothing was found.
//
// If two keys of an object become equal, the second one gets a suffix, so that the result
// has no duplicate keys. Errors: *strictjson.Error for a document that is not one valid
// JSON value within l.
func (s *Scrubber) JSON(doc []byte, l strictjson.Limits) (out []byte, count int, err error) {
	return s.json(doc, l, newCallBudget())
}

func (s *Scrubber) json(doc []byte, l strictjson.Limits, call *callBudget) (out []byte, count int, err error) {
	if err := strictjson.Check(doc, l); err != nil {
		return nil, 0, err
	}
	if !s.IsActive() || !strictjson.HasText(doc, MinLength) && (s.known == nil || !s.known.numeric && len(doc) < shortestList) {
		return doc, 0, nil
	}
	w := jsonWalker{scrub: s, call: call, in: doc}
	w.walkValue()
	if w.count == 0 {
		return doc, 0, nil
	}
	w.flush(len(doc))
	return w.out, w.count, nil
}

// jsonWalker walks a valid document and writes the redacted one. out has the bytes before
// copied.
type jsonWalker struct {
	scrub  *Scrubber
	call   *callBudget
	in     []byte
	i      int
	out    []byte
	copied int
	count  int
	// valueKind is the kind that the member's name announces for the value at i.
	valueKind kind
	// captureText: store the redacted text at i in captured.
	captureText bool
	captured    []byte
}

// flush copies the input up to end.
func (w *jsonWalker) flush(end int) {
	w.out = append(w.out, w.in[w.copied:end]...)
	w.copied = end
}

// replaceString writes text as a JSON string instead of the input from start to w.i.
func (w *jsonWalker) replaceString(start int, text string) {
	w.flush(start)
	w.out = wire.AppendString(w.out, text)
	w.copied = w.i
}

// walkValue walks the value at or after w.i, and stops after it.
func (w *jsonWalker) walkValue() {
	switch w.peek() {
	case '"':
		start := w.i
		if text, n := w.redactString(w.valueKind); n > 0 {
			w.count += n
			w.replaceString(start, text)
			w.captured = []byte(text)
		} else if w.captureText {
			w.captured = w.keyAt(start)
		}
	case '{':
		w.walkObject()
	case '[':
		w.walkArray()
	default: // a number or a literal
		start := w.i
		w.skipLiteral()
		if text, n := w.scrub.redactNumber(w.in[start:w.i]); n > 0 {
			w.count += n
			w.replaceString(start, text)
		}
	}
}

func (w *jsonWalker) walkArray() {
	start, numbers := w.i, true
	w.i++
	for w.peek() != ']' {
		numbers = numbers && isDigit(w.in[w.i])
		w.walkValue()
		w.skipComma()
	}
	w.i++
	if !numbers || w.copied > start {
		return
	}
	if text, n := w.scrub.redactNumbers(w.in[start:w.i], w.call); n > 0 {
		w.count += n
		w.replaceString(start, text)
	}
}

// skipLiteral skips a number or a literal.
func (w *jsonWalker) skipLiteral() {
	for w.i < len(w.in) && strings.IndexByte(" \t\r\n,]}", w.in[w.i]) < 0 {
		w.i++
	}
}

func (w *jsonWalker) walkObject() {
	start := w.i
	w.i++
	var names *keySet // made when a key changes
	named := kindNone // kind of the value in {"name": "DB_PASSWORD", "value": …}
	for w.peek() != '}' {
		at := w.i
		key, n := w.redactString(kindNone)
		name := w.keyAt(at)
		promise := w.scrub.shapes.kindOfName(name)
		if promise == kindNone && (string(name) == "value" || string(name) == "Value") {
			promise = named
		}
		if n > 0 {
			promise = w.scrub.shapes.kindOfName([]byte(key))
			if names == nil {
				names = w.collectKeys(start)
			}
			w.count += n
			w.replaceString(at, names.uniqueKey(key))
		}
		w.peek()
		w.i++ // the colon
		isText := w.peek() == '"'
		if isText {
			w.valueKind = promise
		}
		w.captureText = isText && isNaming(name)
		w.walkValue()
		w.valueKind = kindNone
		if w.captureText {
			named, w.captureText = w.scrub.shapes.kindOfName(w.captured), false
		}
		w.skipComma()
	}
	w.i++
}

// isNaming reports a member that names the value member of its object.
func isNaming(key []byte) bool {
	switch string(key) {
	case "name", "key", "Name", "Key":
		return true
	}
	return false
}

// redactString reads the string at w.i and redacts it as a value of kind k. n is the number
// of secrets; text is only set if n is positive.
func (w *jsonWalker) redactString(k kind) (text string, n int) {
	raw := w.skipString()
	if w.call.isStopped() {
		return "", 0
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return w.scrub.redactLeaf(raw, k, w.call)
	}
	var decoded string
	if err := json.Unmarshal(w.in[w.i-len(raw)-2:w.i], &decoded); err != nil {
		return "", 0 // cannot happen: the document was checked
	}
	return w.scrub.redactLeaf([]byte(decoded), k, w.call)
}

// keyAt returns the key in w.in[at:w.i].
func (w *jsonWalker) keyAt(at int) []byte {
	raw := w.in[at:w.i]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var key string
	_ = json.Unmarshal(raw, &key)
	return []byte(key)
}

// skipString skips the string at w.i and returns the bytes between its quotes.
func (w *jsonWalker) skipString() []byte {
	w.i++
	start := w.i
	for w.in[w.i] != '"' {
		if w.in[w.i] == '\\' {
			w.i++
		}
		w.i++
	}
	w.i++
	return w.in[start : w.i-1]
}

// peek skips white space and returns the byte at w.i.
func (w *jsonWalker) peek() byte {
	for {
		switch c := w.in[w.i]; c {
		case ' ', '\t', '\r', '\n':
			w.i++
		default:
			return c
		}
	}
}

// skipComma skips the comma after an element, if there is one.
func (w *jsonWalker) skipComma() {
	if w.peek() == ',' {
		w.i++
	}
}

// keySet has the keys of one object.
type keySet struct {
	taken      map[string]bool
	lastSuffix map[string]int
}

// collectKeys collects the keys of the object at start that do not change.
func (w *jsonWalker) collectKeys(start int) *keySet {
	n := &keySet{taken: map[string]bool{}, lastSuffix: map[string]int{}}
	look := jsonWalker{scrub: w.scrub, call: w.call, in: w.in, i: start + 1}
	for look.peek() != '}' {
		from := look.i
		if _, hits := look.redactString(kindNone); hits == 0 {
			var key string
			_ = json.Unmarshal(w.in[from:look.i], &key)
			n.taken[key] = true
		}
		look.peek()
		look.i++
		look.skipValue()
		look.skipComma()
	}
	return n
}

// uniqueKey returns key, or key with the first free suffix.
func (n *keySet) uniqueKey(key string) string {
	name := key
	for n.taken[name] {
		n.lastSuffix[key]++
		name = key + "#" + strconv.Itoa(n.lastSuffix[key]+1)
	}
	n.taken[name] = true
	return name
}

// skipValue skips a value.
func (w *jsonWalker) skipValue() {
	depth := 0
	for {
		switch w.peek() {
		case '"':
			w.skipString()
		case '{', '[':
			depth++
			w.i++
		case '}', ']':
			depth--
			w.i++
		case ',', ':':
			w.i++
		default:
			w.skipLiteral()
		}
		if depth == 0 {
			return
		}
	}
}
