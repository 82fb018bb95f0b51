package natsd

import (
	"bytes"
	"encoding/binary"
)

// finding is damage of a block, with the bytes as they were.
type finding struct {
	Damage

	damaged []byte
}

// whole reports whether every record is sound.
func (b *block) whole() bool {
	for at := 0; at < len(b.buf); {
		size := b.size(at)
		if size == 0 || !b.sound(at, size) {
			return false
		}
		at += size
	}
	return true
}

// mend puts all records right. cut is where the block ends then; -1 if its length stays.
func (b *block) mend(left *int) (found []finding, cut int) {
	var last uint64 // sequence of the last message
	for at := 0; at < len(b.buf); {
		size := b.size(at)
		switch {
		case size > 0 && b.sound(at, size):
		case size > 0 && b.fits(at, size): // the subject is odd
			was := bytes.Clone(b.buf[at : at+size])
			if b.correct(at, at+size, left) {
				found = append(found, b.finding(at, at+size, was, Repaired))
			}
		default:
			next := b.next(at, last)
			end := next
			if next == 0 {
				end = len(b.buf)
			}
			was := bytes.Clone(b.buf[at:end])
			switch {
			case size > 0 && at+size <= end && b.correct(at, at+size, left):
				end = at + size
				found = append(found, b.finding(at, end, was[:size], Repaired))
			case at+size != end && b.correct(at, end, left):
				found = append(found, b.finding(at, end, was, Repaired))
			case next == 0:
				f := finding{damaged: was, Damage: Damage{
					Outcome: Lost, Offset: at, Bytes: len(was), Stream: b.stream, Sequence: last + 1,
					What: "it ends within a record, which was cut off: a write was torn, or the file was cut",
				}}
				b.describe(&f, at)
				return append(found, f), at
			default:
				found = append(found, b.finding(at, end, was, b.giveUp(at, end, last)))
			}
			size = end - at
		}
		if b.message(at) || b.sequence(at) > 0 && b.rawSequence(at)&noteBit == 0 {
			last = max(last, b.sequence(at))
		}
		at += size
	}
	return found, -1
}

// finding describes a record that was damaged and is repaired now.
func (b *block) finding(at, end int, was []byte, outcome Outcome) finding {
	f := finding{damaged: was, Damage: Damage{
		Outcome: outcome, Offset: at, Bytes: end - at, Stream: b.stream, Sequence: b.sequence(at),
	}}
	f.What = map[Outcome]string{
		Repaired: "a flipped bit of a record was repaired",
		Kept:     "the content of a record is lost, and reading it is an error from now on",
		Lost:     "a record, or several, cannot be recognized",
	}[outcome]
	if outcome != Lost {
		b.describe(&f, at)
	}
	return f
}

// describe adds whose record it is, as far as that can be read.
func (b *block) describe(f *finding, at int) {
	size := b.size(at)
	if size == 0 {
		return
	}
	subject, rest := b.parts(at, size)
	if r := b.layout.Record(b.stream, string(subject), rest); r.Tenant != "" || r.Valid {
		f.Subject, f.Tenant, f.RunID = string(subject), r.Tenant, r.RunID
	}
}

// giveUp replaces what is between two records by a record without content: under its subject, if that
// can be read, otherwise as a deleted one.
func (b *block) giveUp(at, end int, last uint64) Outcome {
	sequence := b.place(at, end, last)
	clear := func(subject int, seq uint64) {
		b.setLength(at, end-at, false)
		binary.LittleEndian.PutUint64(b.buf[at+atSequence:], seq)
		binary.LittleEndian.PutUint16(b.buf[at+atSubject:], uint16(subject)) //nolint:gosec // G115: it was read from there
		for i := at + recordHead + subject; i < end; i++ {
			b.buf[i] = 0
		}
		copy(b.buf[end-checksum:end], b.sum(at, end-at))
	}
	b.setLength(at, end-at, false)
	if sequence > 0 && b.size(at) > 0 {
		subject, _ := b.parts(at, end-at)
		if len(subject) > 0 && b.layout.Record(b.stream, string(subject), nil).Valid {
			clear(len(subject), sequence)
			return Kept
		}
	}
	clear(0, sequence|deletedBit)
	return Lost
}

// place returns the sequence for what is between two records: its own if possible, 0 if there is
// none between theirs.
func (b *block) place(at, end int, last uint64) uint64 {
	following := b.sequence(end)
	if !b.message(end) { // deletions are noted in any order
		following = last + farthest
	}
	switch own := b.rawSequence(at); {
	case last < own && own < following && own&(deletedBit|noteBit) == 0:
		return own
	case last > 0 && last+1 < following:
		return last + 1
	case last == 0 && following > 1 && b.message(end):
		return following - 1
	}
	return 0
}
