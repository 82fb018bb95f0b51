package model

import "strings"

// mark is a mark around a model's thinking.
type mark struct {
	text string
	// ends is the mark that ends the thinking that text begins; empty if text ends it.
	ends string
}

// thinkingMarks are the marks of open models, as their chat templates define them.
//
//nolint:gochecknoglobals // a constant
var thinkingMarks = []mark{
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"<thought>", "</thought>"},
	{"<reasoning>", "</reasoning>"},
	{"<reflection>", "</reflection>"},
	{"<seed:think>", "</seed:think>"},
	{"<|begin_of_thought|>", "<|end_of_thought|>"},
	{"<|START_THINKING|>", "<|END_THINKING|>"},
	{"<scratchpad>", "</scratchpad>"},
	{"<thought_process>", "</thought_process>"},
	{"[THINK]", "[/THINK]"},
	{"◁think▷", "◁/think▷"},
}

// thinkingMark returns the mark at the start of the text, in any case.
func thinkingMark(text string) (mark, bool) {
	for _, m := range thinkingMarks {
		if hasPrefixFold(text, m.text) {
			return mark{text[:len(m.text)], foldedEnd(text, m.ends)}, true
		}
		if hasPrefixFold(text, m.ends) {
			return mark{text: text[:len(m.ends)]}, true
		}
	}
	return mark{}, false
}

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

// foldedEnd returns the ending mark as the text writes it.
func foldedEnd(text, end string) string {
	for i := range len(text) - len(end) + 1 {
		if (text[i] == end[0]) && strings.EqualFold(text[i:i+len(end)], end) {
			return text[i : i+len(end)]
		}
	}
	return end
}

// passThinking skips a block of thinking. Everything before a mark that ends thinking, although none
// has begun, is thinking, too: the beginning was part of the prompt.
func (s *searcher) passThinking(m mark) {
	s.pos += len(m.text)
	if m.ends == "" {
		s.drop()
		s.found.thought = true
		return
	}
	s.found.thought = true
	end := strings.Index(s.text[s.pos:], m.ends)
	if end < 0 { // the model never came to its answer
		s.pos = len(s.text)
		return
	}
	s.pos += end + len(m.ends)
}

// The harmony format of gpt-oss has messages in channels: <|channel|>NAME<|message|>TEXT<|end|>. The
// answer is in the channel final, thinking in analysis. In commentary are calls of tools and remarks
// about them, which are the answer only if there is no final channel.
const (
	channelMark = "<|channel|>"
	messageMark = "<|message|>"
	// maxHeader limits the text between the marks: the channel, the tool and the type of its text.
	maxHeader = 256
)

// messageEnds are the marks that end a message.
//
//nolint:gochecknoglobals // a constant
var messageEnds = []string{"<|end|>", "<|start|>", "<|return|>", "<|call|>", channelMark}

// passChannel reads the header of a message, and skips a message that is not the answer.
func (s *searcher) passChannel() {
	header := s.text[s.pos+len(channelMark):]
	name := ""
	for _, known := range []string{"final", "commentary", "analysis"} {
		if hasPrefixFold(strings.TrimLeft(header, " "), known) {
			name = known
		}
	}
	s.pos += len(channelMark) + headerSize(header, name)
	switch {
	case name == "final":
		s.drop()
		s.final = true
	case name == "commentary" && !s.final:
	default:
		if len(s.found.documents) == 0 {
			s.found.thought = true
		}
		s.pos += messageSize(s.text[s.pos:])
	}
}

// headerSize returns the size of a header with its mark. Some servers remove the mark.
func headerSize(header, name string) int {
	part := header[:min(len(header), maxHeader)]
	if at := strings.Index(part, messageMark); at >= 0 && !strings.ContainsAny(part[:at], "{\n") {
		return at + len(messageMark)
	}
	return len(header) - len(strings.TrimLeft(header, " ")) + len(name)
}

// messageSize returns the size of a message up to the mark that ends it.
func messageSize(text string) int {
	for i := 0; i < len(text); i += 2 {
		at := strings.Index(text[i:], "<|")
		if at < 0 {
			break
		}
		i += at
		for _, end := range messageEnds {
			if hasPrefixFold(text[i:], end) {
				return i
			}
		}
	}
	return len(text)
}

// passStrippedChannels skips the thinking of a model whose server has removed the marks of channels.
func (s *searcher) passStrippedChannels() {
	const analysis, final = "analysis", "assistantfinal"
	if at := strings.Index(s.text, final); at > 0 && strings.HasPrefix(s.text, analysis) {
		s.pos = at + len(final)
		s.found.thought = true
	}
}
