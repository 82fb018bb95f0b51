// Package corpus generates the labelled texts for measuring the rules of shapes.yaml. Each
// line has one secret of a rule, or none.
//
// The texts are generated from a seed, so they are reproducible and contain no real secret.
// `go generate` writes corpus.jsonl. The file has each secret in pieces, so that code
// hosting services do not report it as a leaked key.
package corpus

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
)

//go:generate go run waybill.dev/waybill/tools/gencorpus

// Line is one labelled text.
type Line struct {
	// Rule is the id of the rule that must find Secret; empty means that no rule may match.
	Rule string `json:"rule,omitempty"`
	Text string `json:"text"`
	// Secret is the part of Text that must be redacted.
	Secret string `json:"secret,omitempty"`
}

// Joint separates two pieces of a secret in the file.
const Joint = "{+}"

// piece is the length of a piece. It is shorter than the minimum of key scanners.
const piece = 7

// Cut returns the line as it is in the file.
func (l Line) Cut() Line {
	if l.Secret == "" {
		return l
	}
	var parts []string
	rest := l.Secret
	for len(rest) > piece {
		parts, rest = append(parts, rest[:piece]), rest[piece:]
	}
	whole := l.Secret
	l.Secret = strings.Join(append(parts, rest), Joint)
	l.Text = strings.ReplaceAll(l.Text, whole, l.Secret)
	return l
}

// Join undoes Cut.
func (l Line) Join() Line {
	l.Text, l.Secret = strings.ReplaceAll(l.Text, Joint, ""), strings.ReplaceAll(l.Secret, Joint, "")
	return l
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
	mixed  = lower + upper + digits
	hexes  = "0123456789abcdef"
)

// source draws the parts of texts.
type source struct{ *rand.Rand }

func (s source) from(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[s.IntN(len(alphabet))]
	}
	return string(b)
}

func (s source) pick(list ...string) string { return list[s.IntN(len(list))] }

func (s source) segment(n int) string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"k":"` + s.from(mixed, n) + `"}`))
}

// Make returns the corpus: n lines of each kind.
func Make(n int) []Line {
	s := source{rand.New(rand.NewPCG(20260131, 1))} //nolint:gosec // G404: reproducible on purpose
	var out []Line
	for _, m := range secrets {
		for range n {
			secret := m.make(s)
			out = append(out, Line{Rule: m.rule, Text: fmt.Sprintf(around[s.IntN(len(around))], secret), Secret: secret})
		}
	}
	for _, m := range within {
		for range n {
			secret := m.make(s)
			out = append(out, Line{Rule: m.rule, Text: fmt.Sprintf(m.text, secret), Secret: secret})
		}
	}
	for _, m := range harmless {
		for range n {
			out = append(out, Line{Text: m(s)})
		}
	}
	return out
}
