package redact

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// JSON scrubs every string leaf and every object key of a document. Whatever
// needs no change keeps its bytes: numbers of any size, key order, space,
// escapes. doc is never written to; out is doc itself when nothing was found.
//
// Two keys of one object that become equal are told apart by a suffix, so that
// the result has no duplicate keys. Errors: *strictjson.Error for a document
// that is not one sound JSON value within l.
func (s *Scrubber) JSON(doc []byte, l strictjson.Limits) (out []byte, count int, err error) {
	if err := strictjson.Check(doc, l); err != nil {
		return nil, 0, err
	}
	if !s.IsActive() || !strictjson.HasText(doc, MinLength) {
		return doc, 0, nil
	}
	w := jsonWalker{scrub: s, in: doc}
	w.walkValue()
	if w.count == 0 {
		return doc, 0, nil
	}
	w.flush(len(doc))
	return w.out, w.count, nil
}

// walk reads a document that is known to be sound and writes it anew. Bytes
// before copied are in out already.
type jsonWalker struct {
	scrub  *Scrubber
	in     []byte
	i      int
	out    []byte
	copied int
	count  int
	// promise is what the name of the member says of the value at i.
	valueKind kind
	// naming asks for the text at i as it is shown, in said.
	captureText bool
	captured    []byte
}

// flush copies the input up to end.
func (w *jsonWalker) flush(end int) {
	w.out = append(w.out, w.in[w.copied:end]...)
	w.copied = end
}

// put writes text as a JSON string in place of the input up to w.i.
func (w *jsonWalker) replaceString(start int, text string) {
	w.flush(start)
	w.out = wire.AppendString(w.out, text)
	w.copied = w.i
}

// value walks the value that begins at or after w.i, and stops behind it.
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
		w.i++
		for w.peek() != ']' {
			w.walkValue()
			w.skipComma()
		}
		w.i++
	default: // a number or a word
		for w.i < len(w.in) && strings.IndexByte(" \t\r\n,]}", w.in[w.i]) < 0 {
			w.i++
		}
	}
}

func (w *jsonWalker) walkObject() {
	start := w.i
	w.i++
	var names *keySet // made when a key changes
	named := kindNone // what {"name": "DB_PASSWORD", "value": …} says of the value
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

// isNaming reports a member that names the value beside it.
func isNaming(key []byte) bool {
	switch string(key) {
	case "name", "key", "Name", "Key":
		return true
	}
	return false
}

// text reads the string at w.i and scrubs it; k is what the name of the member says
// of it. n is the number of occurrences; text is only set when there are any.
func (w *jsonWalker) redactString(k kind) (text string, n int) {
	raw := w.skipString()
	if bytes.IndexByte(raw, '\\') < 0 {
		return w.scrub.redactLeaf(raw, k)
	}
	var decoded string
	if err := json.Unmarshal(w.in[w.i-len(raw)-2:w.i], &decoded); err != nil {
		return "", 0 // not reached: the document was checked
	}
	return w.scrub.redactLeaf([]byte(decoded), k)
}

// name gives the key whose text begins at w.in[at] and ends before w.i.
func (w *jsonWalker) keyAt(at int) []byte {
	raw := w.in[at:w.i]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var key string
	_ = json.Unmarshal(raw, &key)
	return []byte(key)
}

// skipString steps over the string at w.i and gives what is between its quotes.
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

// peek skips space and gives the byte at w.i.
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

// comma steps over the comma after an element, if there is one.
func (w *jsonWalker) skipComma() {
	if w.peek() == ',' {
		w.i++
	}
}

// names are the keys of one object that are in use.
type keySet struct {
	taken      map[string]bool
	lastSuffix map[string]int
}

// collect gathers the keys of the object at start that stay as they are.
func (w *jsonWalker) collectKeys(start int) *keySet {
	n := &keySet{taken: map[string]bool{}, lastSuffix: map[string]int{}}
	look := jsonWalker{scrub: w.scrub, in: w.in, i: start + 1}
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

// claim gives key, or key with the first free suffix.
func (n *keySet) uniqueKey(key string) string {
	name := key
	for n.taken[name] {
		n.lastSuffix[key]++
		name = key + "#" + strconv.Itoa(n.lastSuffix[key]+1)
	}
	n.taken[name] = true
	return name
}

// skipValue steps over a value without looking at its texts.
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
			w.walkValue() // a number or a word
		}
		if depth == 0 {
			return
		}
	}
}
