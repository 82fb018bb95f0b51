package openaicompat

import (
	"strings"
	"unicode/utf8"
)

// tokenBytes is the number of bytes that the double counts as a token.
const tokenBytes = 4

// truncated cuts the reply at the request's token limit and sets the finish reason "length".
// Reasoning counts first.
func (r Reply) truncated(req request) Reply {
	room := req.room()
	if room == 0 || r.Raw != "" {
		return r
	}
	if r.Usage != nil {
		room = max(0, room-r.Usage.Reasoning)
	}
	text := strings.Join(r.Pieces, "")
	if len(text) <= room*tokenBytes {
		return r
	}
	left := runes(text, room*tokenBytes)
	var kept []string
	for _, piece := range r.Pieces {
		piece = piece[:min(len(piece), left)]
		left -= len(piece)
		if piece == "" {
			break
		}
		kept = append(kept, piece)
	}
	u := Usage{Prompt: 1}
	if r.Usage != nil {
		u = *r.Usage
	}
	u.Completion, u.Total = req.room(), 0
	r.Pieces, r.ToolCalls, r.Refusal, r.FinishReason, r.Usage = kept, nil, "", "length", &u
	return r
}

// runes is the largest number of bytes ≤ n of s that does not split a rune.
func runes(s string, n int) int {
	if len(s) <= n {
		return len(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
