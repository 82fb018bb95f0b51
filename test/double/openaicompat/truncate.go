package openaicompat

import (
	"strings"
	"unicode/utf8"
)

// tokenBytes is how much text the double takes for a token.
const tokenBytes = 4

// truncated is the reply as it is when the answer may have only so many tokens: its
// text is cut and it ends with "length". What was thought counts first.
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

// runes is how many bytes of s fit in n without breaking a rune.
func runes(s string, n int) int {
	if len(s) <= n {
		return len(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
