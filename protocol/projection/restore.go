package projection

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"waybill.dev/waybill/protocol/strictjson"
)

// Bounds of an answer. They leave the restored value within what a schema is
// applied to.
const (
	maxAnswerBytes = 4 << 20
	maxAnswerDepth = 127
)

// AnswerError says why an answer is none under its projection.
type AnswerError struct {
	// Path is a JSON pointer into the answer. It repeats names the model chose.
	Path string
	// Reason says what would be right. It never quotes a value of the answer.
	Reason string
}

// Error gives place and reason.
func (e *AnswerError) Error() string {
	const most = 256
	path := e.Path
	if len(path) > most {
		path = path[:most] + "..."
	}
	return fmt.Sprintf("answer at %q: %s", path, e.Reason)
}

// under moves the error one level down.
func (e *AnswerError) under(token string) *AnswerError {
	e.Path = pointer(token) + e.Path
	return e
}

// Restore brings an answer under the projection back to what the schema is
// about: null for a member that may be absent is taken away, what was said as
// text or as a list is put back, the wrapping object too. All else stays as it
// is, byte for byte; when nothing changes the answer itself is given back. An
// answer of another form than the projection is passed on where that harms
// nothing, for validation to judge. The error is an *AnswerError.
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
		answer, node = inner, p.root.members[0].node
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

// sound checks a document before it is walked.
func sound(doc []byte, depth int) error {
	err := strictjson.Check(doc, strictjson.Limits{MaxBytes: maxAnswerBytes, MaxDepth: depth})
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return &AnswerError{Path: e.Path, Reason: e.Reason}
	}
	return err
}

// restorer walks an answer along the nodes, and copies it as far as it changes.
type restorer struct {
	scanner
	depth int
	out   []byte
	done  int // src up to here is in out, or gone
}

// replace puts other bytes in the place of a span. Spans come in order.
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

// branch finds the branch of a union that the next value belongs to, nil if that
// can't be told.
func (r *restorer) branch(n *node) *node {
	kind := r.kind()
	if kind != objects || n.tag == "" {
		return n.byKind[kind]
	}
	at := r.i
	defer func() { r.i = at }()
	for r.i++; r.next('}'); r.skip() {
		if name := r.name(); string(name) != n.tag || r.kind() != strs {
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

// text puts the value in the place of its text.
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

// restored gives the next value on its own.
func (r *restorer) restored(n *node) ([]byte, *AnswerError) {
	from := r.i
	r.skip()
	inner := restorer{scanner: scanner{src: r.src[from:r.i]}, depth: r.depth}
	if err := inner.value(n); err != nil {
		return nil, err
	}
	return inner.result(), nil
}

// entries puts an object in the place of the list of its members.
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
