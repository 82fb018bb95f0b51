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

	"waybill.dev/waybill/protocol/jsonpointer"
)

// kinds is a set of JSON types.
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

// has reports whether the set includes all of k.
func (s kinds) has(k kinds) bool { return s&k == k }

// value is a JSON value that preserves the order of members. at is the path of a schema in its
// document; a merged value has the path of the merge.
type value struct {
	kind   kinds
	at     string
	fields []field  // of an object; merged objects may repeat a name
	items  []*value // of an array
	plain  string   // text of a string, literal of another scalar

	id *digest // computed on demand
}

type field struct {
	name  string
	value *value
}

// read returns the value of a checked document.
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

// pointer encodes one step of a JSON pointer (RFC 6901).
func pointer(token string) string {
	return "/" + jsonpointer.Escape(token)
}

// get returns the first member with a name; nil if there is none.
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

// texts returns the strings of a list.
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

// without returns an object without some members.
func (v *value) without(names ...string) *value {
	out := &value{kind: v.kind, at: v.at, fields: make([]field, 0, len(v.fields))}
	for _, f := range v.fields {
		if !slices.Contains(names, f.name) {
			out.fields = append(out.fields, f)
		}
	}
	return out
}

// append renders v as JSON.
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

// String returns v as JSON.
func (v *value) String() string { return string(v.append(nil)) }

// appendText renders a JSON string without HTML escapes.
func appendText(b []byte, s string) []byte {
	if isPlain(s) {
		return append(append(append(b, '"'), s...), '"')
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // strings always marshal
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}

// isPlain reports whether a text needs no escape in JSON.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// digest represents a value in comparisons.
type digest [sha256.Size]byte

// equal compares as in JSON Schema: 1.0 equals 1, and the order of members is irrelevant.
func equal(a, b *value) bool { return a == b || a.identity() == b.identity() }

// identity is equal for equal values. It is cached, because values with many references are
// compared often.
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

// memberIdentities returns the sorted identities of an object's members.
func (v *value) memberIdentities() []digest {
	ids := make([]digest, len(v.fields))
	for i, f := range v.fields {
		name, id := sha256.Sum256([]byte(f.name)), f.value.identity()
		ids[i] = sha256.Sum256(append(name[:], id[:]...))
	}
	slices.SortFunc(ids, func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// decimal renders a JSON number as digits and a power of ten, so that 1, 1.0 and 1e0 are equal. It
// never expands a power.
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
