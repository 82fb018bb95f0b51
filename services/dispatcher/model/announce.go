package model

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
)

// Models show documents that are not their answer: drafts, examples, the format, what they were given. They
// say so in words: before the document in its line, in the line above it, or right after it. Such a
// document does not count.

// announcement returns the words that introduce a document: the last clause before it in its line, else the
// label or the heading above it. labelled means that they end with a colon.
func (s *searcher) announcement(at int) (words string, labelled bool) {
	before := s.before(at)
	lines := strings.Split(before, "\n")
	if words, labelled = clause(lines[len(lines)-1]); words != "" {
		return words, labelled
	}
	const most = 4 // blank lines, and the first line of a block
	for _, line := range slices.Backward(lines[max(0, len(lines)-1-most) : len(lines)-1]) {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, fence) || strings.HasPrefix(trimmed, "~~~") {
			continue
		}
		words, labelled = clause(line)
		if labelled || heading.MatchString(trimmed) {
			return words, labelled
		}
		break
	}
	return "", false
}

// heading matches a heading, or a line in bold.
var heading = regexp.MustCompile(`^(?:#{1,6} .*|\*\*.*\*\*|__.*__)$`)

// clause returns the last clause of a line without its marks, in lower case.
func clause(line string) (words string, labelled bool) {
	if withoutMarks(line) == "" {
		return "", false
	}
	line = strings.Trim(strings.ToLower(line), marksBefore+"_#(“‘«")
	line = strings.ReplaceAll(line, "’", "'")
	if at := strings.IndexByte(line, '<'); at >= 0 { // an opening tag
		line = strings.TrimSpace(line[:at])
	}
	if trimmed := strings.TrimRight(line, ":："); trimmed != line {
		line, labelled = trimmed, true
	}
	if at := clauseEnd.FindAllStringIndex(line, -1); at != nil {
		line = line[at[len(at)-1][1]:]
	}
	return strings.Trim(line, " \t*_~`\"'"), labelled
}

// clauseEnd matches the end of a clause within a line.
var clauseEnd = regexp.MustCompile(`[,.;:!?—–(][*_]*\s+`)

// isRejected reports whether the words around a document say that it is not the answer.
func (s *searcher) isRejected(d document) bool {
	words, labelled := s.announcement(d.begins)
	if d.path != pathText && isTemplate(d.raw) {
		return true
	}
	after := s.lineAfter(d.end) // what precedes another document is about that one
	if rejectedMark.MatchString(s.lineBefore(d.begins)) || !strings.ContainsAny(after, "{[") && rejectedAfter.MatchString(after) {
		return true
	}
	switch {
	case words == "" || words == actionInput:
		return false
	case (chosen.MatchString(words) || chosenAbroad.MatchString(words)) && !notChosen.MatchString(words):
		return false
	case rejecting.MatchString(words), rejectingAbroad.MatchString(words), isGiven(words):
		return true
	}
	return !labelled && (negation.MatchString(words) || supposed.MatchString(s.lineBefore(d.begins)))
}

// before returns what precedes a place, after the last document.
func (s *searcher) before(at int) string { return s.text[min(at, max(at-maxLine, s.last)):at] }

func (s *searcher) lineBefore(at int) string {
	before := s.before(at)
	return before[strings.LastIndexByte(before, '\n')+1:]
}

var (
	// rejectedMark matches a sign before a document, or the beginning of struck out text.
	rejectedMark = regexp.MustCompile(`[❌✗✘✖❎🚫👎]\x{FE0F}?[^\pL]*$|(?:^|[^~])~~$`)
	// rejectedAfter matches words right after a document.
	rejectedAfter = regexp.MustCompile("(?i)^[*_`\"' ]*(?:" +
		`(?:is|was|are|were|would be)(?: not\b|n['’]t\b| wrong| invalid| incorrect)|` +
		`(?:\(|<-+|←|//|#|--)\s*(?:this is |that is |is |was )?(?:wrong|incorrect|invalid|bad|rejected|draft|example|old|no\b|not\b|do not)|[❌✗✘✖🚫👎])`)
	// chosen matches the label of an answer, although it may name another one: the corrected version of your
	// previous answer.
	chosen    = regexp.MustCompile(`\b(?:corrected|updated|revised|fixed|improved|final|better|correct)\b`)
	notChosen = regexp.MustCompile(`\b(?:not|never|before)\b[a-z ]*\b(?:corrected|updated|revised|fixed|improved|final|better|correct)\b`)
	// rejecting matches the label of a document that does not count.
	rejecting = regexp.MustCompile(`\b(?:incorrect|wrong|bad|invalid|rejected|discarded|obsolete|outdated|faulty|flawed|previous|previously|` +
		`earlier|initial|initially|alternative|alternatively|otherwise|hypothetical|hypothetically|unless|avoid|observation|observed|` +
		`examples?|e\.g\.?|for instance|samples?|placeholders?|drafts?|do not|don't|must not|should not|never)\b|` +
		`(?:could|might|would) (?:look|be something|read)\b|^(?:option|variant|candidate|choice) [a-z0-9]$|` +
		`^before\b|^(?:the |my |your )?(?:old|original)\b|\bfirst (?:try|attempt|version|guess|idea)\b|^not\b|^(?:or |but |and )?if\b|` +
		`\b(?:returned|received|retrieved|got|had|sent|gave(?: me)?|asked(?: for)?)$|` +
		`^(?:the |a )?(?:tool|function|api|search)(?:'s)? (?:output|results?|response|call)$`)
	// supposed matches what would be the answer under a condition.
	supposed = regexp.MustCompile(`(?i)\bif\b[^.!?]*\b(?:would|could|might)\b[^.!?]*$`)
	// negation matches a denial just before a document in its line.
	negation = regexp.MustCompile(`(?:\b(?:not|never|cannot|without|instead of|rather than|except)|n't)(?: [a-z']+){0,3}$`)
)

// given are the names of what a model has from others, shown those of what it may also produce, with "here is".
//
//nolint:gochecknoglobals // constants
var (
	given = []string{
		"input", "inputs", "context", "prompt", "question", "query", "format", "structure", "shape", "source", "sources",
		"reference", "references", "citation", "citations", "footnotes",
	}
	shown    = []string{"schema", "template", "note", "notes", "remark", "hint", "ps", "quote", "quotation"}
	relating = []string{"in", "as", "from", "for", "with", "of", "to", "per", "by", "following", "on", "into"}
)

// isGiven reports whether a label is a name of what the model was given, or of the form of an answer: not
// "the answer in the required format".
func isGiven(label string) bool {
	words := strings.Fields(label)
	for len(words) > 1 && slices.Contains([]string{"is", "was", "are", "were"}, words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	const most = 4
	if len(words) == 0 || len(words) > most {
		return false
	}
	last := strings.Trim(words[len(words)-1], "*_`()")
	if slices.ContainsFunc(words[:len(words)-1], func(w string) bool { return slices.Contains(relating, w) }) {
		return false
	}
	here := strings.HasPrefix(words[0], "here") || words[0] == "this" || words[0] == "below"
	return slices.Contains(given, last) || !here && slices.Contains(shown, last)
}

// isSource reports whether a list of numbers at a place is a citation: a label names sources, or nothing
// introduces it.
func (s *searcher) isSource(at int) bool {
	words, labelled := s.announcement(at)
	if words == "" {
		before := s.text[min(max(s.begins, s.last), at):at]
		if strings.Count(before, "\n") > 1 && s.last > s.begins { // a paragraph after another list
			return true
		}
		return strings.TrimSpace(withoutMarks(before)) != ""
	}
	return !labelled || isGiven(words)
}

// action matches the line in which a model names the tool that it calls.
var action = regexp.MustCompile(`(?im)^[ \t*_]*action[ \t*_]*:[ \t*_]*([^\n*]+?)[ \t*_]*$`)

// actionInput is the label of a tool's input.
const actionInput = "action input"

// calledTool returns the name of the tool that gets a document as its input; empty for none.
func (s *searcher) calledTool(at int) string {
	if m := functionaryCall.FindStringSubmatch(s.before(at)); m != nil && m[1] != "all" {
		return m[1]
	}
	if words, _ := s.announcement(at); words != actionInput {
		return ""
	}
	all := action.FindAllStringSubmatch(s.before(at), -1)
	if all == nil {
		return ""
	}
	return all[len(all)-1][1]
}

// doubt matches the beginning of a sentence in which a model takes back what it has written.
var doubt = regexp.MustCompile(`(?im)(?:^|[.!?:]\s+)[*_>\s\-(]*(?:` +
	`wait(?:[,.!—–…\-]|$| a (?:moment|minute|second))|hold on|oops|whoops|hm+\b|actually\b|correction\b|edit:|scratch that|strike that|` +
	`on (?:second thoughts?|reflection)|no[,.!]|nope|sorry[,.]|apologies|my (?:mistake|bad)|` +
	`i(?:'ve| have)? (?:made a mistake|was wrong|misread|misunderstood|take (?:that|it) back|meant|need to (?:correct|fix|change|revise)|should have)|` +
	`let me (?:re|fix|correct|try|think|change|start)|(?:that|this|the above|it)(?:['’]s| is| was) (?:wrong|incorrect|not (?:right|correct|quite|what))|` +
	`ignore (?:that|this|the)|disregard|(?:this|that|the) (?:\w+ )?(?:is|was)(?: not|n['’]t) (?:a|an|the|my|valid)\b)`)

// isDoubted reports whether the text takes its last document back, or only quotes it.
func (s *searcher) isDoubted() bool {
	docs := s.found.documents
	if len(docs) == 0 {
		return false
	}
	last := docs[len(docs)-1]
	rest := s.withoutThoughts(last.end)
	if doubt.MatchString(rest) || isDoubtedAbroad(rest) {
		return true
	}
	if last.path == pathFence && strings.IndexByte("-0123456789", last.raw[0]) >= 0 { // which number is it?
		for _, n := range number.FindAllString(rest, -1) {
			if n != string(last.raw) {
				return true
			}
		}
	}
	return !slices.ContainsFunc(docs, func(d document) bool { return !d.quoted }) && denied.MatchString(rest)
}

// withoutThoughts returns the text from an offset without the blocks of thinking in it.
func (s *searcher) withoutThoughts(from int) string {
	var b strings.Builder
	for _, block := range s.thoughts {
		if block[0] >= from {
			b.WriteString(s.text[from:block[0]])
			from = min(block[1], len(s.text))
		}
	}
	b.WriteString(s.text[from:])
	return b.String()
}

var (
	number = regexp.MustCompile(`-?\b\d+(?:\.\d+)?\b`)
	// denied matches a denial outside of quotations.
	denied = regexp.MustCompile(`(?im)^[ \t]*[^>\s].*(?:\b(?:not|no|none|nothing|never|cannot)\b|n['’]t\b)`)
)

// isQuoted reports whether a line begins with the mark of a quotation.
func isQuoted(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " \t"), ">") }

// placeholder matches a member whose value stands for another one.
var placeholder = regexp.MustCompile(`"([^"\\]{1,64})"\s*:\s*"(?:<([^<>"/]{1,40})>|(\.\.\.|…)|\{\{([^{}"]*)\}\})"`)

// typeWord matches what a placeholder says of its value.
var typeWord = regexp.MustCompile(`(?i)\b(?:string|str|text|number|integer|int|float|boolean|bool|date|value|your|insert|here|the|a|an|some)\b`)

// isTemplate reports whether a document is the form of an answer, with the name or the type of a member in
// place of its value: {"title": "<title>"}.
func isTemplate(raw json.RawMessage) bool {
	for _, m := range placeholder.FindAllSubmatch(raw, -1) {
		inner := strings.TrimSpace(string(m[2]) + string(m[4]))
		if len(m[3]) > 0 || typeWord.MatchString(inner) || plainName(inner) == plainName(string(m[1])) {
			return true
		}
	}
	return false
}

// isSchemaDocument reports whether a document is a JSON Schema, which models repeat next to their answer.
func isSchemaDocument(raw json.RawMessage) bool {
	if !bytes.Contains(raw, []byte(`"$schema"`)) && !bytes.Contains(raw, []byte(`"properties"`)) {
		return false
	}
	members := strictjson.Object(raw)
	if draft, ok := strictjson.String(members["$schema"]); ok && strings.Contains(draft, "json-schema.org") {
		return true
	}
	_, filled := filledSchema(members)
	return string(members["type"]) == `"object"` && len(strictjson.Object(members["properties"])) > 0 && !filled
}
