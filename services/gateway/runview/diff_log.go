package runview

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/wire"
)

// logReader reads the events of one log for a comparison.
type logReader struct {
	namer

	entries []*entry
	// nodes has the entries of each node; those of the run itself have no node.
	nodes map[string][]*entry
	// open is the stream of each node to which its next chunk belongs.
	open map[string]*entry
	// seen counts the events of each type and node.
	seen  map[string]int
	next  int64
	bytes int
}

func newLogReader(runID string) logReader {
	return logReader{
		namer: newNamer(runID), nodes: map[string][]*entry{}, open: map[string]*entry{}, seen: map[string]int{},
	}
}

// entry is an event, or the chunks of one answer.
type entry struct {
	seq  int64
	typ  string
	node string
	// sum is the digest of what is compared.
	sum [sha256.Size]byte
	doc []byte
	// stream is nil for a single event.
	stream *stream
	// pair is the counterpart in the other log; nil if there is none.
	pair *entry
}

// event is the part of an event that is compared.
type event struct {
	Type    string          `json:"type"`
	NodeID  string          `json:"nodeId"`
	Payload json.RawMessage `json:"payload"`
}

// stream is the text of consecutive chunks.
type stream struct {
	member string
	text   strings.Builder
	// rest are the members of the chunks that are compared, in their order.
	rest strings.Builder
	last map[string]json.RawMessage
	n    int
}

// streamed maps the events that are pieces of a text to the member with the piece.
//
//nolint:gochecknoglobals // a constant
var streamed = map[string]string{
	string(wire.EventOutputChunk): "chunk", string(wire.EventAgentReasoningDelta): "delta",
}

// add adds the next event; nil for none. It returns false if the log is too large.
func (l *logReader) add(doc []byte) bool {
	if doc == nil {
		return true
	}
	if l.bytes += len(doc); l.bytes > maxLogBytes {
		return false
	}
	var e event
	readable := json.Unmarshal(doc, &e) == nil
	seq := l.next
	l.next++
	if member := streamed[e.Type]; member != "" && l.addChunk(seq, e, doc, member) {
		return true
	}
	l.close(e.NodeID)
	x := l.append(&entry{seq: seq, typ: e.Type, node: e.NodeID, doc: doc})
	if !readable {
		x.sum = sha256.Sum256(doc)
		return true
	}
	x.sum = sha256.Sum256([]byte(e.Type + "\x00" + l.payload(e.Payload)))
	return true
}

// append adds an entry. Ids that appear first in it are named after it.
func (l *logReader) append(x *entry) *entry {
	l.entries = append(l.entries, x)
	l.nodes[x.node] = append(l.nodes[x.node], x)
	key := x.node + "\x00" + x.typ
	l.seen[key]++
	l.at(key + "\x00" + strconv.Itoa(l.seen[key]))
	return x
}

// addChunk adds a chunk to the stream of its node; false: it is not a chunk.
func (l *logReader) addChunk(seq int64, e event, doc []byte, member string) bool {
	var members map[string]json.RawMessage
	var text string
	if json.Unmarshal(e.Payload, &members) != nil || json.Unmarshal(members[member], &text) != nil {
		return false
	}
	x := l.open[e.NodeID]
	if x == nil || x.typ != e.Type {
		l.close(e.NodeID)
		x = l.append(&entry{seq: seq, typ: e.Type, node: e.NodeID, doc: doc, stream: &stream{member: member}})
		l.open[e.NodeID] = x
	}
	x.stream.add(text, members)
	if string(members["isLast"]) == "true" {
		l.close(e.NodeID)
	}
	return true
}

// close ends the stream of a node: its next chunk begins another one.
func (l *logReader) close(node string) {
	x := l.open[node]
	if x == nil {
		return
	}
	delete(l.open, node)
	x.sum = sha256.Sum256([]byte(x.typ + "\x00" + l.text(x.stream.text.String()+"\x00"+x.stream.rest.String())))
}

// closeAll ends all streams, in the order in which they began.
func (l *logReader) closeAll() {
	for _, x := range l.entries {
		if l.open[x.node] == x {
			l.close(x.node)
		}
	}
}

// add adds a chunk. How the text is cut, and what follows from that, is not compared.
func (s *stream) add(text string, members map[string]json.RawMessage) {
	s.text.WriteString(text)
	if meta := members["meta"]; len(meta) > 0 {
		s.rest.Write(meta)
	}
	s.last = members
	s.n++
}

// document returns the event to report: for several chunks, the first with the whole text, and the
// other members of the last.
func (e *entry) document() json.RawMessage {
	if e.stream == nil || e.stream.n == 1 {
		return e.doc
	}
	text, err := json.Marshal(e.stream.text.String())
	if err != nil {
		return e.doc
	}
	var doc map[string]json.RawMessage
	if json.Unmarshal(e.doc, &doc) != nil {
		return e.doc
	}
	e.stream.last[e.stream.member] = text
	payload, err := json.Marshal(e.stream.last)
	if err != nil {
		return e.doc
	}
	doc["payload"] = payload
	out, err := json.Marshal(doc)
	if err != nil {
		return e.doc
	}
	return out
}
