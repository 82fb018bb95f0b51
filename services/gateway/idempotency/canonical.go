package idempotency

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"
)

// canonical is the document's RFC 8785 form, but for numbers that no double
// holds: those keep their exact value. The RFC is defined for numbers that are
// doubles alone (its §3.1), and runs keep the digits of their inputs, so two
// requests that differ in such a number ask for different things.
func canonical(doc []byte) ([]byte, error) {
	form, err := jcs.Transform(doc)
	if err != nil {
		return nil, err
	}
	marked, back := markInexact(doc)
	if len(back) == 0 {
		return form, nil
	}
	if form, err = jcs.Transform(marked); err != nil {
		return nil, err
	}
	return []byte(strings.NewReplacer(back...).Replace(string(form))), nil
}

// markInexact puts strings that nobody can have written into the place of
// numbers that no double holds. back lists each string and what it stands for.
func markInexact(doc []byte) (marked []byte, back []string) {
	mark := ""
	for i := 0; i < len(doc); {
		end := tokenEnd(doc, i)
		token := string(doc[i:end])
		i = end
		value, inexact := inexactNumber(token)
		if !inexact {
			marked = append(marked, token...)
			continue
		}
		if mark == "" {
			mark = rand.Text()
		}
		place := fmt.Sprintf("%q", mark+strconv.Itoa(len(back)))
		marked, back = append(marked, place...), append(back, place, value)
	}
	return marked, back
}

// tokenEnd is where the string or number that begins at i ends; anything else is
// one byte long. The document is known to be JSON.
func tokenEnd(doc []byte, i int) int {
	start := doc[i]
	if start != '"' && !inNumber(start) {
		return i + 1
	}
	for i++; i < len(doc); i++ {
		switch {
		case start == '"' && doc[i] == '\\':
			i++
		case start == '"' && doc[i] == '"':
			return i + 1
		case start != '"' && !inNumber(doc[i]):
			return i
		}
	}
	return i
}

// inNumber also takes the e of true and false for a token. inexactNumber sees that
// it is none, and it is copied as it is.
func inNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// inexactNumber gives the decimal value of a number that the double it rounds
// to, written as RFC 8785 writes it, does not have.
func inexactNumber(token string) (value string, inexact bool) {
	if token[0] != '-' && (token[0] < '0' || token[0] > '9') {
		return "", false
	}
	f, err := strconv.ParseFloat(token, 64)
	if err != nil {
		return "", false
	}
	rounded, err := jcs.NumberToJSON(f)
	if err != nil {
		return "", false
	}
	value = decimal(token)
	return value, value != decimal(rounded)
}

// maxExponentDigits is beyond every exponent of a double: longer ones are not
// calculated with, and their numbers are told apart by how they are written.
const maxExponentDigits = 9

// decimal writes a number's exact value in one way: digits without zeros at
// either end, and an exponent.
func decimal(number string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	if len(exponent) > maxExponentDigits {
		return strings.ToLower(number)
	}
	exp, _ := strconv.Atoi(exponent) // none is 0
	sign := ""
	if mantissa[0] == '-' {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exp -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	exp += len(digits) - len(trimmed)
	if trimmed == "" {
		return "0"
	}
	return sign + trimmed + "e" + strconv.Itoa(exp)
}
