package sample

import "unicode"

// maxPiece is the longest piece of a word, as tokenizers cut long ones.
const maxPiece = 8

// split cuts a text into pieces as a model streams it: a word with the space
// before it, a run of other signs, a part of a long word. The pieces joined are
// the text.
func split(text string) []string {
	var pieces []string
	start, length, before := 0, 0, rune(-1)
	for i, r := range text {
		if i > start && (boundary(before, r) || length == maxPiece) {
			pieces = append(pieces, text[start:i])
			start, length = i, 0
		}
		before = r
		length++
	}
	if start < len(text) {
		pieces = append(pieces, text[start:])
	}
	return pieces
}

func boundary(a, b rune) bool {
	if unicode.IsSpace(a) {
		return false
	}
	return unicode.IsSpace(b) || isWord(a) != isWord(b)
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
