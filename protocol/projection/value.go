package projection

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// kinds is a set of the kinds of JSON values.
type kinds uint8

const (
	nulls kinds = 1 << iota
	booleans
	numbers
	strs
	arrays
	objects
	anything = nulls | booleans | numbers | strs | arrays | objects
)

// has reports whether every kind of k is in the set.
func (s kinds) has(k kinds) bool { return s&k == k }

// value is a JSON value that keeps the order of members. at is the place of a schema
// in the document it was read from; what is made of several values is placed where
// they were put together.
type value struct {
	kind   kinds
	at     string
	fields []field  // of an object; a name may stand twice in what was merged
	items  []*value // of an array
	plain  string   // of a string its text, of another scalar its literal

	id *digest // once it is known
}

type field struct {
	name  string
	value *value
}

// read gives the value of a document that was checked before.
func read(doc []byte) *value {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	return readNext(d)
}

func readNext(d *json.Decoder) *value {
	token, _ := d.Token() // checked before
	v := &value{}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			v.kind = objects
			for d.More() {
				name, _ := d.Token()
				text, _ := name.(string)
				v.fields = append(v.fields, field{text, readNext(d)})
			}
		} else {
			v.kind = arrays
			for d.More() {
				v.items = append(v.items, readNext(d))
			}
		}
		_, _ = d.Token() // the end
	case string:
		v.kind, v.plain = strs, token
	case json.Number:
		v.kind, v.plain = numbers, token.String()
	case bool:
		v.kind, v.plain = booleans, strconv.FormatBool(token)
	default:
		v.kind, v.plain = nulls, "null"
	}
	return v
}

// pointer writes one step of a JSON pointer (RFC 6901).
func pointer(token string) string {
	return "/" + strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}

// get is the first member of a name, nil if there is none.
func (v *value) get(name string) *value {
	if v == nil {
		return nil
	}
	for _, f := range v.fields {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

// texts are the strings of a list.
func (v *value) texts() []string {
	if v == nil {
		return nil
	}
	var out []string
	for _, item := range v.items {
		if item.kind == strs {
			out = append(out, item.plain)
		}
	}
	return out
}

// is reports whether v is the boolean schema b.
func (v *value) is(b bool) bool {
	return v != nil && v.kind == booleans && v.plain == strconv.FormatBool(b)
}

// without is an object that lacks some members.
func (v *value) without(names ...string) *value {
	out := &value{kind: v.kind, at: v.at, fields: make([]field, 0, len(v.fields))}
	for _, f := range v.fields {
		if !slices.Contains(names, f.name) {
			out.fields = append(out.fields, f)
		}
	}
	return out
}

// append writes v as JSON.
func (v *value) append(b []byte) []byte {
	switch v.kind {
	case objects:
		b = append(b, '{')
		for i, f := range v.fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, f.name), ':')
			b = f.value.append(b)
		}
		return append(b, '}')
	case arrays:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.append(b)
		}
		return append(b, ']')
	case strs:
		return appendText(b, v.plain)
	default:
		return append(b, v.plain...)
	}
}

// String is v as JSON.
func (v *value) String() string { return string(v.append(nil)) }

// appendText writes a JSON string, without the escapes that only HTML needs.
func appendText(b []byte, s string) []byte {
	if isPlain(s) {
		return append(append(append(b, '"'), s...), '"')
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always can be
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}

// isPlain reports that a text stands in JSON as it is.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// digest stands for a value in comparisons.
type digest [sha256.Size]byte

// equal compares as JSON Schema does: 1.0 is 1, the order of members is nothing.
func equal(a, b *value) bool { return a == b || a.identity() == b.identity() }

// identity is the same for values that are equal. It is found once: what many places
// refer to is compared at each of them.
func (v *value) identity() digest {
	if v.id != nil {
		return *v.id
	}
	h := sha256.New()
	h.Write([]byte{byte(v.kind)})
	switch v.kind {
	case numbers:
		h.Write([]byte(decimal(v.plain)))
	case arrays:
		for _, item := range v.items {
			id := item.identity()
			h.Write(id[:])
		}
	case objects:
		for _, m := range v.memberIdentities() {
			h.Write(m[:])
		}
	default:
		h.Write([]byte(v.plain))
	}
	v.id = new(digest)
	h.Sum(v.id[:0])
	return *v.id
}

// memberIdentities are the identities of an object's members, in an order of their own.
func (v *value) memberIdentities() []digest {
	ids := make([]digest, len(v.fields))
	for i, f := range v.fields {
		name, id := sha256.Sum256([]byte(f.name)), f.value.identity()
		ids[i] = sha256.Sum256(append(name[:], id[:]...))
	}
	slices.SortFunc(ids, func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// decimal writes a JSON number as its digits and a power of ten, so that 1, 1.0 and 1e0
// are the same text. It never writes a power out.
func decimal(number string) string {
	digits, power, _ := strings.Cut(strings.ToLower(number), "e")
	sign := ""
	if rest, negative := strings.CutPrefix(digits, "-"); negative {
		sign, digits = "-", rest
	}
	exponent, ok := new(big.Int).SetString(cmp.Or(strings.TrimPrefix(power, "+"), "0"), 10)
	if !ok {
		return number
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	exponent.Sub(exponent, big.NewInt(int64(len(fraction))))
	digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return "0"
	}
	exponent.Add(exponent, big.NewInt(int64(len(digits)-len(trimmed))))
	return sign + trimmed + "e" + exponent.String()
}
