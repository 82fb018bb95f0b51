package compat

import (
	"encoding/json"
	"hash/maphash"
	"slices"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// wholePart is the whole text of a part of a message.
type wholePart struct {
	item int64
	text string
}

// wholeText returns the text of a response whose pieces came: that of its messages, else that of its parts.
// Empty means that the server did not repeat all of it.
func (r *responseReader) wholeText(items []json.RawMessage) string {
	var parts []wholePart
	for i, doc := range items {
		var item outputItem
		if strictjson.Read(doc, &item) == nil && item.isAnswer() {
			parts = append(parts, wholePart{int64(i), contentOf(item.Content).Content.alone()})
		}
	}
	if !slices.ContainsFunc(parts, func(p wholePart) bool { return p.text == "" }) && len(parts) > 0 {
		return joinParts(parts)
	}
	for at := range r.streamed {
		if at.kind == pieceText && !r.comments[at.item] { // its whole did not come
			return ""
		}
	}
	return joinParts(r.parts)
}

// isAnswer reports whether an item is a message of the model, and not a comment on its work.
func (i outputItem) isAnswer() bool {
	return outbound.PlainText(i.Type) == itemMessage && outbound.PlainText(i.Phase) != commentary &&
		!outbound.IsForeignRole(outbound.PlainText(i.Role))
}

// alone returns the text of a piece without others.
func (p textPiece) alone() string {
	var j joiner
	return j.add(p) + j.flush()
}

func joinParts(parts []wholePart) (text string) {
	for i, p := range parts {
		if i > 0 && p.item != parts[i-1].item {
			text += itemBreak
		}
		text += p.text
	}
	return text
}

// repeats finds events that a server sends again, as after a lost connection: with the same number and content.
// Numbers that different events share mean nothing. The zero repeats are ready.
type repeats struct {
	seed maphash.Seed
	seen map[int64]uint64
	// unnumbered is set once two events had the same number.
	unnumbered bool
}

// maxRemembered limits the events that are remembered.
const maxRemembered = 4096

// has reports whether an event came before, and remembers it. A negative number is none.
func (r *repeats) has(sequence int64, data []byte) bool {
	if sequence < 0 || r.unnumbered {
		return false
	}
	if r.seen == nil || len(r.seen) == maxRemembered {
		if r.seen == nil {
			r.seed = maphash.MakeSeed()
		}
		r.seen = map[int64]uint64{}
	}
	sum := maphash.Bytes(r.seed, data)
	before, came := r.seen[sequence]
	r.seen[sequence] = sum
	r.unnumbered = came && before != sum
	return came && before == sum
}
