package judge

import (
	"encoding/json"
	"math/big"
	"time"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Bits of jsonschema.Types, which has no names for them.
var (
	bitNull, bitBoolean, bitNumber  = typeBit("null"), typeBit("boolean"), typeBit("number")
	bitInteger, bitString, bitArray = typeBit("integer"), typeBit("string"), typeBit("array")
	bitObject                       = typeBit("object")
)

func typeBit(name string) jsonschema.Types {
	var t jsonschema.Types
	t.Add(name)
	return t
}

// isType applies the keyword type. 1.0 is an integer.
func (r *run) isType(s *jsonschema.Schema, v any) bool {
	if s.Types == nil || *s.Types&typeOf(v) != 0 {
		return true
	}
	if n, ok := v.(json.Number); ok && *s.Types&bitInteger != 0 && isInteger(n) {
		return true
	}
	return r.fails(s, func() jsonschema.ErrorKind { return &kind.Type{Want: s.Types.ToStrings()} })
}

func typeOf(v any) jsonschema.Types {
	switch v.(type) {
	case nil:
		return bitNull
	case bool:
		return bitBoolean
	case string:
		return bitString
	case []any:
		return bitArray
	case map[string]any:
		return bitObject
	}
	return bitNumber
}

// isListed applies the keywords const and enum.
func (r *run) isListed(s *jsonschema.Schema, v any) bool {
	if s.Const != nil && !r.equal(v, *s.Const) {
		return r.fails(s, func() jsonschema.ErrorKind { return &kind.Const{Want: *s.Const} })
	}
	if s.Enum != nil && !r.among(r.program.enums[s.Enum], v) {
		return r.fails(s, func() jsonschema.ErrorKind { return &kind.Enum{Want: s.Enum.Values} })
	}
	return true
}

// Prices per byte: an address is split, a regular expression parsed.
const (
	formatPrice = 2
	regexPrice  = 16
	sizePrice   = 40
)

// isFormatted applies the keyword format.
func (r *run) isFormatted(s *jsonschema.Schema, v any) bool {
	text, ok := v.(string)
	if s.Format == nil || !ok {
		return true
	}
	price, validate := formatPrice, s.Format.Validate
	if s.Format.Name == "regex" {
		price, validate = regexPrice, func(any) error { return r.program.regex.Check(text) }
		if !r.pay(sizePrice * r.program.regex.Size(text)) {
			return false
		}
	}
	if !r.pay(price * (8 + len(text))) {
		return false
	}
	return validate(v) == nil || r.fails(s, func() jsonschema.ErrorKind { return &kind.Format{Want: s.Format.Name} })
}

// text applies the keywords for strings.
func (r *run) text(s *jsonschema.Schema, v string) bool {
	ok := true
	if s.MinLength != nil || s.MaxLength != nil {
		if !r.pay(1 + len(v)/textShare) {
			return false
		}
		n := utf8.RuneCountInString(v)
		ok = s.MinLength == nil || n >= *s.MinLength ||
			r.fails(s, func() jsonschema.ErrorKind { return &kind.MinLength{Got: n, Want: *s.MinLength} })
		ok = (s.MaxLength == nil || n <= *s.MaxLength ||
			r.fails(s, func() jsonschema.ErrorKind { return &kind.MaxLength{Got: n, Want: *s.MaxLength} })) && ok
	}
	if s.Pattern != nil && !r.over(ok) && !r.matches(s.Pattern, v) {
		return r.fails(s, func() jsonschema.ErrorKind { return &kind.Pattern{Want: s.Pattern.String()} })
	}
	return ok
}

// Stepped is a regular expression with a known cost: the maximum number of states the engine visits
// for a text of a length.
type Stepped interface{ Steps(length int) int }

// Bounded is a regular expression whose cost is known only afterwards. ended is false if it exceeded
// its own limits.
type Bounded interface {
	MatchBounded(text string) (ok bool, took time.Duration, ended bool)
}

// maxMatching limits the time of all bounded matches of a document. Ordinary ones take microseconds,
// so the result does not depend on the machine's load.
const maxMatching = 250 * time.Millisecond

// matches pays for a regular expression and applies it.
func (r *run) matches(re jsonschema.Regexp, text string) bool {
	if bounded, ok := re.(Bounded); ok {
		return r.matchesBounded(bounded, text)
	}
	steps := 1 + len(text)
	if stepped, ok := re.(Stepped); ok {
		steps = stepped.Steps(len(text))
	}
	const bytePrice = 2
	return r.pay(bytePrice*(1+len(text))+steps/patternShare) && re.MatchString(text)
}

// matchesBounded applies a regular expression and pays for it. One without a result uses up the
// budget: the document is neither valid nor invalid then.
func (r *run) matchesBounded(re Bounded, text string) bool {
	const bytePrice = 8 // the engine copies the text
	if !r.pay(bytePrice * (1 + len(text))) {
		return false
	}
	ok, took, ended := re.MatchBounded(text)
	if r.matching += took; !ended || r.matching > r.maxMatching {
		r.spent = true
	}
	return ok && !r.spent
}

// numeric applies the keywords for numbers.
func (r *run) numeric(s *jsonschema.Schema, v any) bool {
	n, isNumber := v.(json.Number)
	if !isNumber {
		return true
	}
	ok := true
	for _, b := range [...]struct {
		bound *big.Rat
		holds func(order int) bool
		fails func() jsonschema.ErrorKind
	}{
		{s.Minimum, func(order int) bool { return order >= 0 }, func() jsonschema.ErrorKind { return &kind.Minimum{Want: s.Minimum} }},
		{s.Maximum, func(order int) bool { return order <= 0 }, func() jsonschema.ErrorKind { return &kind.Maximum{Want: s.Maximum} }},
		{s.ExclusiveMinimum, func(order int) bool { return order > 0 }, func() jsonschema.ErrorKind { return &kind.ExclusiveMinimum{Want: s.ExclusiveMinimum} }},
		{s.ExclusiveMaximum, func(order int) bool { return order < 0 }, func() jsonschema.ErrorKind { return &kind.ExclusiveMaximum{Want: s.ExclusiveMaximum} }},
	} {
		if b.bound == nil {
			continue
		}
		order := r.compare(n, b.bound)
		if ok = (b.holds(order) || r.fails(s, b.fails)) && ok; r.over(ok) {
			return false
		}
	}
	if s.MultipleOf != nil {
		ok = (r.multiple(n, s.MultipleOf) || r.fails(s, func() jsonschema.ErrorKind { return &kind.MultipleOf{Want: s.MultipleOf} })) && ok
	}
	return ok
}
