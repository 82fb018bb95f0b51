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
	if !s.Knows() || !strictjson.HasText(doc, MinLength) {
		return doc, 0, nil
	}
	w := walk{scrub: s, in: doc}
	w.value()
	if w.count == 0 {
		return doc, 0, nil
	}
	w.flush(len(doc))
	return w.out, w.count, nil
}

// walk reads a document that is known to be sound and writes it anew. Bytes
// before copied are in out already.
type walk struct {
	scrub  *Scrubber
	in     []byte
	i      int
	out    []byte
	copied int
	count  int
	// promise is what the name of the member says of the value at i.
	promise kind
	// naming asks for the text at i as it is shown, in said.
	naming bool
	said   []byte
}

// flush copies the input up to end.
func (w *walk) flush(end int) {
	w.out = append(w.out, w.in[w.copied:end]...)
	w.copied = end
}

// put writes text as a JSON string in place of the input up to w.i.
func (w *walk) put(start int, text string) {
	w.flush(start)
	w.out = wire.AppendString(w.out, text)
	w.copied = w.i
}

// value walks the value that begins at or after w.i, and stops behind it.
func (w *walk) value() {
	switch w.peek() {
	case '"':
		start := w.i
		if text, n := w.text(w.promise); n > 0 {
			w.count += n
			w.put(start, text)
			w.said = []byte(text)
		} else if w.naming {
			w.said = w.name(start)
		}
	case '{':
		w.object()
	case '[':
		w.i++
		for w.peek() != ']' {
			w.value()
			w.comma()
		}
		w.i++
	default: // a number or a word
		for w.i < len(w.in) && strings.IndexByte(" \t\r\n,]}", w.in[w.i]) < 0 {
			w.i++
		}
	}
}

func (w *walk) object() {
	start := w.i
	w.i++
	var names *names // made when a key changes
	named := nothing // what {"name": "DB_PASSWORD", "value": …} says of the value
	for w.peek() != '}' {
		at := w.i
		key, n := w.text(nothing)
		name := w.name(at)
		promise := w.scrub.shapes.promised(name)
		if promise == nothing && (string(name) == "value" || string(name) == "Value") {
			promise = named
		}
		if n > 0 {
			promise = w.scrub.shapes.promised([]byte(key))
			if names == nil {
				names = w.collect(start)
			}
			w.count += n
			w.put(at, names.claim(key))
		}
		w.peek()
		w.i++ // the colon
		isText := w.peek() == '"'
		if isText {
			w.promise = promise
		}
		w.naming = isText && isNaming(name)
		w.value()
		w.promise = nothing
		if w.naming {
			named, w.naming = w.scrub.shapes.promised(w.said), false
		}
		w.comma()
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
func (w *walk) text(k kind) (text string, n int) {
	raw := w.skipString()
	if bytes.IndexByte(raw, '\\') < 0 {
		return w.scrub.leaf(raw, k)
	}
	var decoded string
	if err := json.Unmarshal(w.in[w.i-len(raw)-2:w.i], &decoded); err != nil {
		return "", 0 // not reached: the document was checked
	}
	return w.scrub.leaf([]byte(decoded), k)
}

// name gives the key whose text begins at w.in[at] and ends before w.i.
func (w *walk) name(at int) []byte {
	raw := w.in[at:w.i]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var key string
	_ = json.Unmarshal(raw, &key)
	return []byte(key)
}

// skipString steps over the string at w.i and gives what is between its quotes.
func (w *walk) skipString() []byte {
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
func (w *walk) peek() byte {
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
func (w *walk) comma() {
	if w.peek() == ',' {
		w.i++
	}
}

// names are the keys of one object that are in use.
type names struct {
	taken map[string]bool
	tried map[string]int
}

// collect gathers the keys of the object at start that stay as they are.
func (w *walk) collect(start int) *names {
	n := &names{taken: map[string]bool{}, tried: map[string]int{}}
	look := walk{scrub: w.scrub, in: w.in, i: start + 1}
	for look.peek() != '}' {
		from := look.i
		if _, hits := look.text(nothing); hits == 0 {
			var key string
			_ = json.Unmarshal(w.in[from:look.i], &key)
			n.taken[key] = true
		}
		look.peek()
		look.i++
		look.skipValue()
		look.comma()
	}
	return n
}

// claim gives key, or key with the first free suffix.
func (n *names) claim(key string) string {
	name := key
	for n.taken[name] {
		n.tried[key]++
		name = key + "#" + strconv.Itoa(n.tried[key]+1)
	}
	n.taken[name] = true
	return name
}

// skipValue steps over a value without looking at its texts.
func (w *walk) skipValue() {
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
			w.value() // a number or a word
		}
		if depth == 0 {
			return
		}
	}
}
