package model

import (
	"encoding/json"
	"strings"

	"github.com/kaptinlin/jsonrepair"
)

// Limits of a repair: the library's time grows with the square of depth and size.
const (
	maxRepairBytes = 64 << 10
	maxRepairDepth = 64
)

// repair returns the broken document of an answer as JSON, if only its notation is wrong: commas,
// quotes, names, literals. The library guesses; a result with other values than the answer is none. A document that was cut off is not repaired: what is missing would be lost
// without a word.
func (x extraction) repair(text string) (document, bool) {
	if x.broken < 0 {
		return document{}, false
	}
	broken := text[x.broken:min(len(text), x.end)]
	broken = broken[:(&markReader{text: broken}).next(0, len(broken))]
	closing := "}"
	if broken[0] == '[' {
		closing = "]"
	}
	broken = broken[:strings.LastIndex(broken, closing)+1]
	if len(broken) > maxRepairBytes || !isBalanced(broken) || elides(broken) {
		return document{}, false
	}
	repaired, err := jsonrepair.Repair(broken)
	if err != nil || !json.Valid([]byte(repaired)) || !sameTokens(broken, repaired) {
		return document{}, false
	}
	return document{
		raw: json.RawMessage(repaired), path: pathRepair, offset: x.broken, end: x.broken + len(broken), alone: true,
	}, true
}

// elides reports whether the model left out a part of the document. It does not know strings.
func elides(text string) bool {
	return strings.Contains(text, "...") || strings.Contains(text, "…") || strings.Contains(text, "/*")
}

// isBalanced reports whether as many brackets are closed as opened, not too deep. It does not know
// strings: one with a bracket is left to the model.
func isBalanced(text string) bool {
	depth, most := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			depth--
		}
	}
	return text != "" && depth == 0 && most <= maxRepairDepth
}
