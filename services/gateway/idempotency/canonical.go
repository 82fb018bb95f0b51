package idempotency

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"
)

// canonical returns a document's RFC 8785 form, except for numbers that a double cannot
// represent: they keep their exact value. The RFC covers doubles only (its §3.1), but runs
// keep the digits of their inputs. Two requests that differ in such a number are therefore
// different requests.
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

// markInexact replaces numbers that a double cannot represent by random strings. back lists
// each string, followed by the number's exact value.
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
		placeholder := fmt.Sprintf("%q", mark+strconv.Itoa(len(back)))
		marked, back = append(marked, placeholder...), append(back, placeholder, value)
	}
	return marked, back
}

// tokenEnd returns the end of the string or number that starts at i; other tokens are one
// byte long. The document is valid JSON.
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

// inNumber also matches the e of true and false. inexactNumber does not take that for a
// number, so it is copied unchanged.
func inNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// inexactNumber returns the exact decimal value of a number, and whether it differs from
// that of the nearest double as RFC 8785 writes it.
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

// maxExponentDigits exceeds the exponents of doubles. Numbers with longer exponents are
// compared by their spelling.
const maxExponentDigits = 9

// decimal normalizes a number's exact value: digits without leading or trailing zeros, and
// an exponent.
func decimal(number string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	if len(exponent) > maxExponentDigits {
		return strings.ToLower(number)
	}
	exp, _ := strconv.Atoi(exponent) // absent means 0
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
