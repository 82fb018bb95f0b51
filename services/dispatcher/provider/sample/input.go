package sample

import (
	"regexp"
	"strings"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// untrusted finds what the host fenced in as content from outside (OpenWOP envelope contract §12): if
// there is any, the prompt is about it.
var untrusted = regexp.MustCompile(`(?s)<UNTRUSTED[^>]*>(.*?)</UNTRUSTED>`)

// subjectOf returns the text that the answer is made of: the fenced parts of the user's messages,
// else all of them, else the system text.
func subjectOf(req provider.Request) string {
	var said string
	for _, m := range req.Messages {
		if m.Role == "user" {
			said += textOf(m) + "\n"
		}
	}
	if strings.TrimSpace(said) == "" {
		said = req.System
	}
	var fenced string
	for _, part := range untrusted.FindAllStringSubmatch(said, -1) {
		fenced += part[1] + "\n"
	}
	if fenced != "" {
		said = fenced
	}
	return strings.TrimSpace(said)
}

func textOf(m provider.Message) (text string) {
	parts, _ := m.Parts() // a message without text has no parts
	for _, p := range parts {
		text += p.Text + "\n"
	}
	return text
}

// piece matches a part of a text as a model streams it: a word with the space before it, a part of a
// long word, or a run of other characters.
var piece = regexp.MustCompile(`\s*[\pL\pN]{1,8}|\s*[^\pL\pN\s]+|\s+`)

func split(text string) []string { return piece.FindAllString(text, -1) }

// inputTokens counts the pieces of the request.
func inputTokens(req provider.Request) int {
	n := len(split(req.System)) + len(split(string(req.Schema)))
	for _, m := range req.Messages {
		n += len(split(textOf(m)))
	}
	return n
}
