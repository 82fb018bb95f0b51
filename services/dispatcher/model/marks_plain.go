package model

import (
	"regexp"
	"strings"
)

// Marks of thinking that are no tags: special tokens, words in square brackets, and the words that are left of
// marks.

// tokenForms are the brackets of special tokens, also with full-width bars, and of words.
//
//nolint:gochecknoglobals // a constant
var tokenForms = []struct{ opens, closes string }{{"<|", "|>"}, {"<｜", "｜>"}, {"[", "]"}, {"<", ">"}}

// token is a word in one of the forms.
type token struct {
	// core is the name without what says that it begins or ends something.
	core string
	ends bool
	// slashed means that a slash says that it ends something.
	slashed bool
	size    int
	opens   string
	closes  string
}

// readToken reads a token that is named after thinking at the start of the text: <|begin_of_thought|>,
// <start_think>, [/thinking].
func readToken(text string) (t token, ok bool) {
	head := text[:min(len(text), maxTag)]
	for _, form := range tokenForms {
		inner, begins := strings.CutPrefix(head, form.opens)
		name, _, closed := strings.Cut(inner, form.closes)
		if !begins || !closed || !isThinking(name) || strings.ContainsAny(name, " \t\n<>[]{}\"'(") {
			continue
		}
		core := strings.ToLower(name)
		if form.opens == "<" && !startOrEnd.MatchString(core) {
			continue // a tag
		}
		return token{
			core: withoutEnds.Replace(core), ends: strings.HasPrefix(core, "/") || endWord.MatchString(core),
			slashed: strings.HasPrefix(core, "/"), size: len(form.opens) + len(name) + len(form.closes),
			opens: form.opens, closes: form.closes,
		}, true
	}
	return token{}, false
}

// startOrEnd matches a name that says by a word which side it is on.
var startOrEnd = regexp.MustCompile(`^(?:begin|start|end)_|_(?:begin|start|end)$`)

// endWord matches a name with the word end: end_of_thought, thinking-end, endofthought. Recommendation has
// none.
var endWord = regexp.MustCompile(`(?:^|[^a-z])end(?:$|[^a-z]|of|think|thought|reason)|(?:think|thinking|thought|thoughts|reasoning)end$`)

var withoutEnds = strings.NewReplacer("begin", "", "start", "", "end", "", "of", "", "_", "", "-", "", "▁", "", "/", "") //nolint:gochecknoglobals // a constant

// tokenMark returns the mark of a token at an offset. Words in square brackets can also be headings, links
// or remarks: they begin thinking only if its end follows, or, at the start of a line, the heading of the
// answer. Without both, they do so only as the first line.
func (r *markReader) tokenMark(at int) (mark, bool) {
	t, ok := readToken(r.text[at:])
	begins := at + t.size
	if !ok || t.opens == "[" && strings.HasPrefix(r.text[begins:], "(") {
		return mark{}, false
	}
	m := mark{text: r.text[at:begins]}
	if t.ends {
		return m, t.opens != "[" || t.slashed || r.endsThinking(at, begins)
	}
	if end, ok := r.tokenEnd(begins, t); ok {
		m.ends = end
		return m, true
	}
	m.ends = t.opens + "/" + t.core + t.closes // which does not follow
	if t.opens != "[" {
		return m, true
	}
	before, after := r.line(at, begins)
	if withoutMarks(before) != "" {
		return mark{}, false
	}
	if r.index(); r.lastHeading >= begins {
		m.ends = answerHeading.FindString(r.text[begins:])
		return m, true
	}
	return m, strings.TrimSpace(r.text[:at]) == "" && onlyMarks(after)
}

// endsThinking reports whether a word in square brackets that names an end is one: it is at the start or at
// the end of its line, and no label.
func (r *markReader) endsThinking(from, to int) bool {
	before, after := r.line(from, to)
	return !strings.HasPrefix(after, ":") && (withoutMarks(before) == "" || onlyMarks(after))
}

// line returns what precedes and follows a span in its line.
func (r *markReader) line(from, to int) (before, after string) {
	before = r.text[max(0, from-maxLine):from]
	after, _, _ = strings.Cut(r.text[to:min(len(r.text), to+maxLine)], "\n")
	return before[strings.LastIndexByte(before, '\n')+1:], after
}

// tokenEnd returns the token that ends the thinking of another one, as the text writes it.
func (r *markReader) tokenEnd(from int, t token) (string, bool) {
	r.index()
	last, ok := r.lastEnds[t.opens+t.core]
	if !ok || last < from {
		return "", false
	}
	for at := from; at <= last; at++ {
		at += strings.Index(r.text[at:], t.opens)
		if end, ok := readToken(r.text[at:]); ok && end.ends && end.opens == t.opens && end.core == t.core {
			return r.text[at : at+end.size], true
		}
	}
	return "", false
}

// index finds the last token of each name that ends thinking, and the last heading of an answer, once: a
// hostile answer has many beginnings, and each would search the text for an end in vain.
func (r *markReader) index() {
	if r.lastEnds != nil {
		return
	}
	r.spend(len(r.text))
	r.lastEnds, r.lastHeading = map[string]int{}, -1
	for at := 0; at < len(r.text); at++ {
		next := strings.IndexAny(r.text[at:], "<[")
		if next < 0 {
			return
		}
		at += next
		if t, ok := readToken(r.text[at:]); ok && t.ends {
			r.lastEnds[t.opens+t.core] = at
		}
		if r.text[at] == '[' {
			if headingBegin.MatchString(r.text[at:min(len(r.text), at+maxTag)]) {
				r.lastHeading = at
			}
		}
	}
}

// answerHeading matches the heading of the answer in square brackets, headingBegin one at the start of a text.
var (
	answerHeading = regexp.MustCompile(`(?i)` + headingForm)
	headingBegin  = regexp.MustCompile(`(?i)^` + headingForm)
)

const headingForm = `\[(?:final |the |your )?(?:answer|response|output|result|json)\b[^\[\]\n]{0,20}\]`

// isDraft reports whether a tag at an offset has what a model writes before its answer, or repeats. Such a tag
// can also be around the answer: then nothing precedes it there, and nothing follows a draft.
func (r *markReader) isDraft(t tag, at int) bool {
	if t.closing {
		return false
	}
	after := strings.TrimLeft(r.text[min(at+t.size, len(r.text)):], " \t\r\n")
	wraps := after == "" || strings.IndexByte("{[\"", after[0]) >= 0 || strings.HasPrefix(after, fence)
	switch name := strings.ToLower(t.name); name {
	case "input":
		element := strings.Contains(r.text[at:at+t.size], " ") // of HTML: it has attributes
		return !element && (!wraps || !r.endsWithDraft())
	case "del", "strike":
		return true
	case "draft", "first_draft", "rough_draft", "example", "examples", "tool_response", "tool_result", "tool_results",
		"function_response", "function_result", "function_results", "observation",
		"context", "contexts", "document", "documents", "doc", "docs", "source", "sources", "quote", "blockquote", "passage", "passages",
		"search_result", "search_results", "retrieved", "retrieved_context", "reference", "references":
		return !wraps || !r.endsWithDraft()
	case "analysis", "plan", "planning", "brainstorm", "brainstorming", "critique", "deliberation", "internal", "cot", "notes":
		return !wraps
	}
	return false
}

// endsWithDraft reports whether only marks follow the last draft of the text.
func (r *markReader) endsWithDraft() bool {
	tail := r.text[max(0, len(r.text)-maxLine):]
	end := draftEnd.FindStringIndex(tail)
	return end != nil && onlyMarks(strings.ReplaceAll(tail[end[1]:], "\n", " "))
}

// draftEnd matches all up to the last closing tag of a draft, or of what a model repeats.
var draftEnd = regexp.MustCompile(`(?is)^.*</\s*(?:(?:first_|rough_)?draft|examples?|input|(?:tool|function)_(?:response|results?)|observation|` +
	`contexts?|documents?|docs?|sources?|quote|blockquote|passages?|search_results?|retrieved(?:_context)?|references?)\s*>`)

// strippedMarks are the words that are left of the marks of thinking: of channels, of a program that prints
// them, and those of Granite. alone matches a beginning that nothing else has: without an end, all the
// text is thinking, or all before the first fenced block if fenced is set. other matches beginnings of
// answers that only look alike.
//
//nolint:gochecknoglobals // a constant
var strippedMarks = []struct {
	begins, ends, alone, other *regexp.Regexp
	fenced                     bool
}{
	{
		begins: regexp.MustCompile(`^(?:assistant)?analysis`), ends: regexp.MustCompile(`assistantfinal`),
		alone: regexp.MustCompile(`^(?:assistantanalysis|analysis["“(A-Z])`),
		other: regexp.MustCompile(`^analysis\w*[ \t]*(?:[:=\r\n{\[]|\([{\[])`), // analysisResult = {
	},
	{
		begins: regexp.MustCompile(`^Thinking\.\.\.`), ends: regexp.MustCompile(`\.\.\.done thinking\.`),
		alone: regexp.MustCompile(`^Thinking\.\.\.\s*\n`), fenced: true,
	},
	{
		begins: regexp.MustCompile(`(?i)^\s*here(?: is|'s|’s) my thought process:`),
		ends:   regexp.MustCompile(`(?i)here(?: is|'s|’s) my response:`),
		alone:  regexp.MustCompile(`(?i)^\s*here(?: is|'s|’s) my thought process:`), fenced: true,
	},
}

// passStrippedMarks skips the thinking of a model whose server has removed the marks.
func (s *searcher) passStrippedMarks() {
	for _, m := range strippedMarks {
		if !m.begins.MatchString(s.text) {
			continue
		}
		if end := m.ends.FindStringIndex(s.text); end != nil {
			s.pos, s.begins, s.last = end[1], end[1], end[1]
			s.found.thought = true
			s.readScalar()
		} else if m.alone.MatchString(s.text) && (m.other == nil || !m.other.MatchString(s.text)) {
			s.pos = len(s.text)
			if at := strings.Index(s.text, fence); m.fenced && at >= 0 {
				s.pos = at
			}
			s.found.thought = true
		}
		return
	}
}
