package model

import (
	"bytes"
	"encoding/json"
	"strings"
)

// document is one JSON document found in a model's answer.
type document struct {
	raw json.RawMessage
	// path is how it was found: direct, markdown-fence or brace-walker.
	path string
	// offset is the byte offset of its start in the answer.
	offset int
}

// Values of document.path (envelope.recovery.applied).
const (
	pathDirect = "direct"
	pathFence  = "markdown-fence"
	pathBraces = "brace-walker"
)

// extractDocuments finds the JSON documents of an answer, leniently and deterministically. It tries
// the whole text, then every fenced block that parses, then the first balanced object or array. It
// returns nil if there is none (OpenWOP envelope contract §14.6).
func extractDocuments(text string) []document {
	trimmed := strings.TrimSpace(text)
	if json.Valid([]byte(trimmed)) && trimmed != "" {
		return []document{{raw: json.RawMessage(trimmed), path: pathDirect, offset: strings.Index(text, trimmed)}}
	}
	if docs := fencedDocuments(text); len(docs) > 0 {
		return docs
	}
	if d, ok := firstBalanced(text); ok {
		return []document{d}
	}
	return nil
}

const fence = "```"

// fencedDocuments returns the fenced blocks that are JSON.
func fencedDocuments(text string) []document {
	var docs []document
	for pos := 0; ; {
		open := strings.Index(text[pos:], fence)
		if open < 0 {
			return docs
		}
		body := pos + open + len(fence)
		if nl := strings.IndexByte(text[body:], '\n'); nl >= 0 { // drop the info string
			body += nl + 1
		}
		length := strings.Index(text[body:], fence)
		end := body + length
		if length < 0 { // an unclosed fence extends to the end
			end = len(text)
		}
		block := text[body:end]
		if s := strings.TrimSpace(block); s != "" && json.Valid([]byte(s)) {
			offset := body + strings.Index(block, s)
			docs = append(docs, document{raw: json.RawMessage(s), path: pathFence, offset: offset})
		}
		if length < 0 {
			return docs
		}
		pos = end + len(fence)
	}
}

// maxOpenings limits how many opening brackets are tried, so that nested brackets in a hostile
// answer cost a bounded number of passes.
const maxOpenings = 64

// firstBalanced finds the first object or array that is closed and valid. Braces inside strings do
// not count.
func firstBalanced(text string) (document, bool) {
	b := []byte(text)
	start := 0
	for range maxOpenings {
		i := bytes.IndexAny(b[start:], "{[")
		if i < 0 {
			return document{}, false
		}
		start += i
		end := closingIndex(b, start)
		if end > 0 && json.Valid(b[start:end]) {
			return document{raw: json.RawMessage(b[start:end]), path: pathBraces, offset: start}, true
		}
		if end < 0 { // what follows an unclosed bracket may be its content
			return document{}, false
		}
		start++
	}
	return document{}, false
}

// closingIndex returns the index after the bracket that closes the one at start; -1 if there is
// none.
func closingIndex(b []byte, start int) int {
	depth, inString := 0, false
	for i := start; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// isProse reports whether a text is no JSON document and does not start like one or a fence (OpenWOP
// envelope contract §14.7).
func isProse(text string) bool {
	t := strings.TrimSpace(text)
	if json.Valid([]byte(t)) {
		return false
	}
	if len(t) > 16 {
		t = t[:16]
	}
	return t != "" && !strings.HasPrefix(t, "{") && !strings.HasPrefix(t, "[") && !strings.HasPrefix(t, fence)
}
