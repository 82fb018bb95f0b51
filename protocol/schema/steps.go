package schema

import "regexp/syntax"

// endless is a length greater than that of any text.
const endless = 1 << 30

// stretch is a part of a pattern, and where in a text the engine can be inside it.
type stretch struct {
	states   int // states it can be in at the same time
	from, to int // positions, in characters
}

// stretches splits a pattern that is anchored at the start of the text. Each part is active only
// where the previous parts can have ended: a few states for the head of a text, and one for the
// thousand repetitions of a letter counted from one position. An unanchored pattern is active
// everywhere.
func stretches(re *syntax.Regexp) []stretch {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	if re.Op != syntax.OpConcat || re.Sub[0].Op != syntax.OpBeginText {
		return []stretch{{measureOf(re).states, 0, endless}}
	}
	out := make([]stretch, len(re.Sub))
	from, to := 0, 0
	for i, sub := range re.Sub {
		s := stretch{measureOf(sub).states, from, 0}
		if sub.Op == syntax.OpRepeat { // each optional repetition is a separate path
			s.states += max(0, sub.Max-sub.Min)
		}
		if from == to && counts(sub) {
			s.states = min(s.states, 2) // the letter and the state after it
		}
		shortest, longest := lengths(sub)
		from, to = min(from+shortest, endless), min(to+longest, endless)
		s.to = to
		out[i] = s
	}
	return out
}

// counts reports whether a part is at a single position of itself at a time, if it is entered at a
// single position.
func counts(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return true
	case syntax.OpRepeat, syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		return isLetter(re.Sub[0])
	}
	return isLetter(re)
}

// isLetter reports whether a pattern matches one character.
func isLetter(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return true
	case syntax.OpLiteral:
		return len(re.Rune) == 1
	}
	return false
}

// lengths returns the lengths of the shortest and the longest matching text.
func lengths(re *syntax.Regexp) (shortest, longest int) {
	switch {
	case re.Op == syntax.OpLiteral:
		return len(re.Rune), len(re.Rune)
	case isLetter(re):
		return 1, 1
	case re.Op == syntax.OpAlternate:
		shortest = endless
		for _, sub := range re.Sub {
			a, b := lengths(sub)
			shortest, longest = min(shortest, a), max(longest, b)
		}
		return shortest, longest
	}
	for _, sub := range re.Sub {
		a, b := lengths(sub)
		shortest, longest = min(shortest+a, endless), min(longest+b, endless)
	}
	least, most := times(re)
	if longest > 0 && (most < 0 || longest > endless/max(1, most)) {
		return min(shortest*min(least, endless/max(1, shortest)), endless), endless
	}
	return shortest * least, longest * max(0, most)
}

// times returns how often a pattern repeats its content; most is -1 for unlimited.
func times(re *syntax.Regexp) (least, most int) {
	switch re.Op {
	case syntax.OpStar:
		return 0, -1
	case syntax.OpPlus:
		return 1, -1
	case syntax.OpQuest:
		return 0, 1
	case syntax.OpRepeat:
		return re.Min, re.Max
	}
	return 1, 1
}

// steps returns the maximum number of states the engine visits in a text of n characters.
func steps(parts []stretch, n int) int {
	sum := 0
	for _, s := range parts {
		if s.from <= n {
			sum += s.states * (min(n, s.to) - s.from + 1)
		}
	}
	return sum
}
