package model

import (
	"regexp"
	"strings"
)

// A model whose server does not stop it goes on after its answer: it ends its turn, invents the next question,
// and answers that. What follows the end of the turn is not the answer.

// turnMark matches a special token that ends a turn, or begins that of another.
var turnMark = regexp.MustCompile(`(?i)^(?:<[|｜][ ▁]*(?:im_end|eot|eot_id|eom_id|eos|endoftext|end|return|user|human|` +
	`end[_▁ ]?of[_▁ ]?(?:turn|text|sentence|message|utterance)(?:_token)?)[ ▁]*[|｜]>|` +
	`<[|｜](?:im_start|start_header_id|start_of_role)[|｜]>\s*(?:user|human)\b|` +
	`</s>|<eos>|<turn\|>|<end_of_turn>|<start_of_turn>\s*user\b|\[INST\])`)

// goesOn matches what may follow <|end|> in the harmony format: a further message of the same turn.
var goesOn = regexp.MustCompile(`(?i)^<\|end\|>\s*(?:<\|start\|>\s*assistant|<\|channel\|>)`)

// endsTurn reports whether a text begins with a mark of a turn's end.
func endsTurn(text string) bool {
	head := text[:min(len(text), maxTag)]
	return (head[0] == '<' || head[0] == '[') && turnMark.MatchString(head) && !goesOn.MatchString(head)
}

// otherTurn matches the label of another's turn, or the number of a further example.
var otherTurn = regexp.MustCompile(`(?im)^[ \t>*_]*(?:(?:user|human|instructions?|question|q|input|prompt|next (?:input|question|mail|message|task))[ \t]*\d*[ \t*_]*[:：]|` +
	`example[ \t]+\d+\b)|^#{2,4}[ \t]*(?:user|human|instructions?|input|question|example)\b|^[ \t]*<(?:user|human|next_input|instructions?)>`)

// passesTurn reports whether another's turn begins between the last document, also a broken one, and the position. If the text
// before the first document has such labels itself, the model repeats its prompt, and its answer follows. The
// position is then that of the label.
func (s *searcher) passesTurn() bool {
	first, last := s.found.broken, s.found.broken
	if docs := s.found.documents; len(docs) > 0 {
		first, last = docs[0].begins, docs[len(docs)-1].end
	}
	if last < 0 {
		return false
	}
	from := strings.LastIndexByte(s.text[:max(last, s.scanned)], '\n') + 1
	from = max(from, last)
	between := s.text[from:max(from, s.pos)]
	s.budget -= len(between)
	s.scanned = max(s.scanned, s.pos)
	label := otherTurn.FindStringIndex(between)
	if label == nil {
		return false
	}
	s.budget -= first
	if otherTurn.MatchString(s.text[:first]) {
		return false
	}
	s.pos = from + label[0]
	return true
}

// endTurn ends the text at the position.
func (s *searcher) endTurn() { s.text = s.text[:s.pos] }
