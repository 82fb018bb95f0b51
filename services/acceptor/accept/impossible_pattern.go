package accept

import (
	"math"
	"regexp/syntax"
	"strings"
	"unicode"
)

// matchLengths returns the lengths of the strings that match a pattern. A pattern that the parser does not support,
// for example one that looks ahead, has any length.
func matchLengths(pattern string) interval {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return interval{low: 0, high: math.Inf(1)}
	}
	least, most := lengths(re)
	if re.Op != syntax.OpConcat || re.Sub[0].Op != syntax.OpBeginText || re.Sub[len(re.Sub)-1].Op != syntax.OpEndText {
		most = math.Inf(1)
	}
	return interval{low: least, high: most}
}

// lengths returns the least and the largest length of a match.
func lengths(re *syntax.Regexp) (least, most float64) {
	switch re.Op {
	case syntax.OpLiteral:
		return float64(len(re.Rune)), float64(len(re.Rune))
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1, 1
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			l, m := lengths(sub)
			least, most = least+l, most+m
		}
		return least, most
	case syntax.OpAlternate:
		least = math.Inf(1)
		for _, sub := range re.Sub {
			l, m := lengths(sub)
			least, most = math.Min(least, l), math.Max(most, m)
		}
		return least, most
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return repeated(re)
	case syntax.OpNoMatch:
		return math.Inf(1), 0
	}
	return 0, 0 // empty
}

func repeated(re *syntax.Regexp) (least, most float64) {
	l, m := lengths(re.Sub[0])
	low, high := float64(re.Min), float64(re.Max)
	switch re.Op {
	case syntax.OpStar:
		low, high = 0, math.Inf(1)
	case syntax.OpPlus:
		low, high = 1, math.Inf(1)
	case syntax.OpQuest:
		low, high = 0, 1
	}
	if high < 0 {
		high = math.Inf(1)
	}
	if m == 0 {
		high = 0 // zero times infinity
	}
	return low * l, high * m
}

// matchesNothing reports whether a pattern looks ahead at its start for a character that cannot follow.
func matchesNothing(pattern string) bool {
	ahead, found := strings.CutPrefix(pattern, "^(?=")
	end := strings.IndexByte(ahead, ')')
	if !found || end < 0 || strings.ContainsAny(ahead[:end], `(\[|`) {
		return false
	}
	wanted, ok := firstRunes(ahead[:end])
	follows, known := firstRunes(ahead[end+1:])
	if !ok || !known {
		return false
	}
	for i := 0; i < len(wanted); i += 2 {
		for j := 0; j < len(follows); j += 2 {
			if wanted[i] <= follows[j+1] && follows[j] <= wanted[i+1] {
				return false
			}
		}
	}
	return true
}

// firstRunes returns the ranges of the characters with which a match begins. ok is false if they are not
// known, or a match can be empty.
func firstRunes(pattern string) (ranges []rune, ok bool) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, false
	}
	return first(re)
}

func first(re *syntax.Regexp) (ranges []rune, ok bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return []rune{re.Rune[0], re.Rune[0]}, re.Flags&syntax.FoldCase == 0
	case syntax.OpCharClass:
		return re.Rune, true
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return []rune{0, unicode.MaxRune}, true
	case syntax.OpCapture, syntax.OpPlus:
		return first(re.Sub[0])
	case syntax.OpRepeat:
		ranges, ok = first(re.Sub[0])
		return ranges, ok && re.Min > 0
	case syntax.OpConcat:
		return first(re.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			more, known := first(sub)
			if !known {
				return nil, false
			}
			ranges = append(ranges, more...)
		}
		return ranges, true
	}
	return nil, false
}
