package projection

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"waybill.dev/waybill/protocol/strictjson"
)

// Limits of an answer. They keep the restored value within the limits of schema validation.
const (
	maxAnswerBytes = 4 << 20
	maxAnswerDepth = 127
)

// AnswerError describes why an answer does not match its projection.
type AnswerError struct {
	// Path is a JSON pointer into the answer. It may contain names chosen by the model.
	Path string
	// Reason states what is allowed. It never quotes a value of the answer.
	Reason string
}

// Error returns path and reason.
func (e *AnswerError) Error() string {
	const most = 256
	path := e.Path
	if len(path) > most {
		path = path[:most] + "..."
	}
	return fmt.Sprintf("answer at %q: %s", path, e.Reason)
}

// under prefixes the path of the error.
func (e *AnswerError) under(token string) *AnswerError {
	e.Path = pointer(token) + e.Path
	return e
}

// Restore converts an answer under the projection to a value of the schema. It removes null for
// absent members, and replaces text, entry lists and the wrapping object. The rest is unchanged
// byte for byte; if nothing changes, it returns the answer itself. Harmless deviations from the
// projection are passed on to validation. The error is an *AnswerError.
func (p *Projection) Restore(answer json.RawMessage) (json.RawMessage, error) {
	if err := sound(answer, maxAnswerDepth); err != nil {
		return nil, err
	}
	node := p.root
	if p.wrapped {
		inner, ok := strictjson.Member(answer, wrapAs)
		if !ok {
			return nil, &AnswerError{Reason: `want an object with the member "` + wrapAs + `"`}
		}
		if answer = inner; node == nil {
			return answer, nil
		}
		node = p.root.members[0].node
	}
	if !node.end().works {
		return answer, nil
	}
	r := restorer{scanner: scanner{src: answer}}
	r.space()
	if err := r.value(node); err != nil {
		if p.wrapped {
			err = err.under(wrapAs)
		}
		return nil, err
	}
	return r.result(), nil
}

// sound checks a document before it is scanned.
func sound(doc []byte, depth int) error {
	err := strictjson.Check(doc, strictjson.Limits{MaxBytes: maxAnswerBytes, MaxDepth: depth})
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return &AnswerError{Path: e.Path, Reason: e.Reason}
	}
	return err
}

// restorer scans an answer along the nodes, and copies the parts that change.
type restorer struct {
	scanner
	depth int
	out   []byte
	done  int // src up to here was copied or dropped
}

// replace replaces a span with other bytes. Spans are in order.
func (r *restorer) replace(from, to int, with []byte) {
	if r.out == nil {
		r.out = make([]byte, 0, len(r.src))
	}
	r.out = append(r.out, r.src[r.done:from]...)
	r.out = append(r.out, with...)
	r.done = to
}

func (r *restorer) result() []byte {
	if r.out == nil {
		return r.src
	}
	return append(r.out, r.src[r.done:]...)
}

// value reads the next value.
func (r *restorer) value(n *node) *AnswerError {
	n = n.end()
	if n.shape == shapeUnion && n.works {
		n = r.branch(n)
	}
	if n == nil || !n.works || r.kind() != n.answer() {
		r.skip()
		return nil
	}
	r.depth++
	defer func() { r.depth-- }()
	switch n.shape {
	case shapeObject:
		return r.object(n)
	case shapeArray:
		return r.array(n)
	case shapeEntries:
		return r.entries(n)
	default:
		return r.text(n)
	}
}

// branch returns the branch of a union for the next value; nil if it is ambiguous.
func (r *restorer) branch(n *node) *node {
	kind := r.kind()
	switch {
	case kind == objects && len(n.untagged) > 0:
		return r.untaggedBranch(n)
	case kind != objects || n.tag == "":
		return n.byKind[kind]
	}
	at := r.i
	defer func() { r.i = at }()
	for r.i++; r.next('}'); r.skip() {
		if name := r.name(); !n.tagNames[string(name)] || r.kind() != strs {
			continue
		}
		return n.byTag[string(unquote(r.literal()))]
	}
	return nil
}

func (r *restorer) array(n *node) *AnswerError {
	r.i++
	for i := 0; r.next(']'); i++ {
		item := n.items
		if i < len(n.prefix) {
			item = n.prefix[i]
		}
		if item == nil {
			r.skip()
			continue
		}
		if err := r.value(item); err != nil {
			return err.under(strconv.Itoa(i))
		}
	}
	return nil
}

// text replaces a text with its JSON value.
func (r *restorer) text(n *node) *AnswerError {
	from := r.i
	text := bytes.Trim(unquote(r.literal()), " \t\r\n")
	if err := sound(text, max(1, maxAnswerDepth+1-r.depth)); err != nil {
		return &AnswerError{Reason: "want JSON written as text: " + reason(err)}
	}
	if inner := (scanner{src: text}); !n.takes.has(inner.kind()) {
		return &AnswerError{Reason: "the JSON in the text is of another kind than the schema says"}
	}
	r.replace(from, r.i, text)
	return nil
}

func reason(err error) string {
	if e, ok := errors.AsType[*AnswerError](err); ok {
		return e.Reason
	}
	return err.Error()
}

// restored returns the restored next value.
func (r *restorer) restored(n *node) ([]byte, *AnswerError) {
	from := r.i
	r.skip()
	inner := restorer{scanner: scanner{src: r.src[from:r.i]}, depth: r.depth}
	if err := inner.value(n); err != nil {
		return nil, err
	}
	return inner.result(), nil
}

// entries replaces a list of entries with an object.
func (r *restorer) entries(n *node) *AnswerError {
	from := r.i
	out := []byte{'{'}
	seen := map[string]bool{}
	r.i++
	for i := 0; r.next(']'); i++ {
		key, item, err := r.entry(n)
		if err == nil && seen[string(unquote(key))] {
			err = &AnswerError{Reason: "an earlier entry has the same key; want each key once"}
		}
		if err != nil {
			return err.under(strconv.Itoa(i))
		}
		seen[string(unquote(key))] = true
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), item...)
	}
	r.replace(from, r.i, append(out, '}'))
	return nil
}

func (r *restorer) entry(n *node) (key, item []byte, err *AnswerError) {
	if r.kind() == objects {
		for r.i++; r.next('}'); {
			name := string(r.name())
			switch {
			case name == entryKey && r.kind() == strs:
				key = r.literal()
			case name == entryValue:
				if item, err = r.restored(n.item); err != nil {
					return nil, nil, err.under(entryValue)
				}
			default:
				return nil, nil, &AnswerError{Reason: `want nothing but "key", a string, and "value"`}
			}
		}
	}
	if key == nil || item == nil {
		return nil, nil, &AnswerError{Reason: `want an object with "key", a string, and "value"`}
	}
	return key, item, nil
}
