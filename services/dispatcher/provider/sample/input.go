package sample

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"regexp"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// untrusted finds what the host fenced in as content from outside (OpenWOP
// envelope contract §12): where there is any, that is what the prompt is about.
var untrusted = regexp.MustCompile(`(?s)<UNTRUSTED[^>]*>(.*?)</UNTRUSTED>`)

// subjectOf is the text the answer is made of: the fenced parts of what the user
// said, else all the user said, else the system text.
func subjectOf(req provider.Request) string {
	var said []string
	for _, m := range req.Messages {
		if m.Role == "user" {
			said = append(said, textOf(m.Content))
		}
	}
	text := strings.Join(said, "\n")
	if strings.TrimSpace(text) == "" {
		text = req.System
	}
	var fenced []string
	for _, part := range untrusted.FindAllStringSubmatch(text, -1) {
		fenced = append(fenced, part[1])
	}
	if len(fenced) > 0 {
		text = strings.Join(fenced, "\n")
	}
	return strings.TrimSpace(text)
}

// textOf reads a content: a string, or the text blocks of an array.
func textOf(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if strictjson.Read(content, &blocks) != nil { // blocks of a shape of their own have no text
		return ""
	}
	var parts []string
	for _, b := range blocks {
		parts = append(parts, b.Text)
	}
	return strings.Join(parts, "\n")
}

// inputTokens counts the pieces of everything the request says.
func inputTokens(req provider.Request) int {
	n := len(split(req.System)) + len(split(string(req.Schema)))
	for _, m := range req.Messages {
		n += len(split(textOf(m.Content)))
	}
	return n
}

// hashOf identifies what the request asks. Node and invocation are left out: a
// repeated question gets the repeated answer.
func hashOf(req provider.Request) uint64 {
	h := fnv.New64a()
	part := func(s string) { // with its length, so that parts cannot run together
		_, _ = io.WriteString(h, strconv.Itoa(len(s))+":"+s)
	}
	part(req.System)
	for _, m := range req.Messages {
		part(m.Role)
		part(string(m.Content))
	}
	part(string(req.Schema))
	if req.Seed != nil {
		part(strconv.FormatInt(*req.Seed, 10))
	}
	return h.Sum64()
}
