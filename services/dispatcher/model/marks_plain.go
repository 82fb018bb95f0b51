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
	core   string
	ends   bool
	size   int
	opens  string
	closes string
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
		t = token{
			ends: strings.HasPrefix(core, "/") || strings.Contains(core, "end"), opens: form.opens, closes: form.closes,
			size: len(form.opens) + len(name) + len(form.closes),
		}
		t.core = withoutEnds.Replace(core)
		if form.opens == "<" && !startOrEnd.MatchString(core) {
			continue // a tag
		}
		return t, true
	}
	return token{}, false
}

// startOrEnd matches a name that says by a word which side it is on.
var startOrEnd = regexp.MustCompile(`^(?:begin|start|end)_|_(?:begin|start|end)$`)

var withoutEnds = strings.NewReplacer("begin", "", "start", "", "end", "", "of", "", "_", "", "-", "", "▁", "", "/", "") //nolint:gochecknoglobals // a constant

// tokenMark returns the mark of a token at the start of the text. Words in square brackets can also be
// headings or links: they end at the heading of the answer, if nothing else ends them.
func tokenMark(text string) (mark, bool) {
	t, ok := readToken(text)
	if !ok || t.opens == "[" && strings.HasPrefix(text[t.size:], "(") {
		return mark{}, false
	}
	if t.ends {
		return mark{text: text[:t.size]}, true
	}
	rest := text[t.size:]
	for at := 0; ; at++ {
		next := strings.Index(rest[at:], t.opens)
		if next < 0 {
			break
		}
		at += next
		if end, ok := readToken(rest[at:]); ok && end.ends && end.core == t.core {
			return mark{text: text[:t.size], ends: rest[at : at+end.size]}, true
		}
	}
	if t.opens == "[" {
		if answer := answerHeading.FindString(rest); answer != "" {
			return mark{text: text[:t.size], ends: answer}, true
		}
	}
	return mark{text: text[:t.size], ends: t.opens + "/" + t.core + t.closes}, true // which does not follow
}

// answerHeading matches the heading of the answer in square brackets.
var answerHeading = regexp.MustCompile(`(?i)\[(?:final |the |your )?(?:answer|response|output|result|json)\b[^\[\]\n]{0,20}\]`)

// isDraft reports whether a tag has what a model writes before its answer. Such a tag can also be around the
// answer: then nothing precedes it there.
func isDraft(t tag, after string) bool {
	if t.closing {
		return false
	}
	switch name := strings.ToLower(t.name); name {
	case "draft", "first_draft", "rough_draft":
		return true
	case "analysis", "plan", "planning", "brainstorm", "brainstorming", "critique", "deliberation", "internal", "cot", "notes":
		after = strings.TrimLeft(after, " \t\r\n")
		return after != "" && strings.IndexByte("{[\"", after[0]) < 0 && !strings.HasPrefix(after, fence)
	}
	return false
}

// strippedMarks are the words that are left of the marks of thinking: of channels, of a program that prints
// them, and those of Granite. alone matches a beginning that nothing else has: without an end, all the
// text is thinking.
//
//nolint:gochecknoglobals // a constant
var strippedMarks = []struct{ begins, ends, alone *regexp.Regexp }{
	{
		regexp.MustCompile(`^(?:assistant)?analysis`), regexp.MustCompile(`assistantfinal`),
		regexp.MustCompile(`^(?:assistantanalysis|analysis["“(A-Z])`),
	},
	{
		regexp.MustCompile(`^Thinking\.\.\.`), regexp.MustCompile(`\.\.\.done thinking\.`), regexp.MustCompile(`^Thinking\.\.\.\s*\n`),
	},
	{
		regexp.MustCompile(`(?i)^\s*here(?: is|'s|’s) my thought process:`), regexp.MustCompile(`(?i)here(?: is|'s|’s) my response:`),
		regexp.MustCompile(`(?i)^\s*here(?: is|'s|’s) my thought process:`),
	},
}

// passStrippedMarks skips the thinking of a model whose server has removed the marks.
func (s *searcher) passStrippedMarks() {
	for _, m := range strippedMarks {
		if !m.begins.MatchString(s.text) {
			continue
		}
		if end := m.ends.FindStringIndex(s.text); end != nil {
			s.pos = end[1]
			s.found.thought = true
			s.readScalar()
		} else if m.alone.MatchString(s.text) {
			s.pos = len(s.text)
			s.found.thought = true
		}
		return
	}
}
