package model

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// maxRefusal limits a recorded refusal text, in bytes.
const maxRefusal = 8192

// maxCategory limits a vendor's category. A longer one is omitted.
const maxCategory = 256

// refusalDraft builds the refusal event, the only place for the model's refusal text (OpenWOP
// envelope contract §14.8).
func (e *emission) refusalDraft(ctx context.Context, a answer) (wire.Draft, error) {
	text, err := e.refusalText(ctx, a.req, a.RefusalText)
	if err != nil {
		return wire.Draft{}, err
	}
	category := a.SafetyCategory
	if len(category) > maxCategory {
		category = ""
	}
	shown := e.task.shownModel(a.req, a.Result)
	return draft(wire.EventEnvelopeRefusal, a.req.NodeID, wire.Trusted, struct {
		NodeID         string  `json:"nodeId"`
		Provider       string  `json:"provider"`
		Model          string  `json:"model"`
		RefusalText    *string `json:"refusalText"`
		SafetyCategory *string `json:"safetyCategory,omitempty"`
	}{a.req.NodeID, shown.Provider, shown.Model, optional(text), optional(category)}), nil
}

// refusalText removes secrets and words of the prompt from a refusal; models often repeat the
// prompt. Secrets are removed first: after the removal of a word a secret would no longer be
// detected. Without a scrubber it returns nothing.
func (e *emission) refusalText(ctx context.Context, req provider.Request, text string) (string, error) {
	if text == "" || e.cfg.WithholdsRefusals {
		return "", nil
	}
	clean, err := e.redactPrefix(ctx, text, maxRefusal)
	if clean == "" || err != nil {
		return "", err
	}
	said := vocabulary{}
	said.addText(req.System)
	for _, m := range req.Messages {
		said.addJSON(m.Content)
	}
	return truncateBytes(said.redactWords(clean), maxRefusal), nil
}

// redactPrefix redacts the start of a text, some bytes more than most. The text is cut after
// redaction, because half a secret would not be detected. It returns nothing without a scrubber.
func (e *emission) redactPrefix(ctx context.Context, text string, most int) (string, error) {
	if e.deps.Scrubber == nil {
		return "", nil
	}
	s, err := e.deps.Scrubber(e.task.Tenant, e.task.RunID, e.task.CredentialRef != "").Open(ctx)
	if err != nil {
		return "", err
	}
	defer s.Close()
	text = strings.ToValidUTF8(text, "\uFFFD")
	var out strings.Builder
	for last := false; !last && out.Len() < most; {
		piece := truncateBytes(text, most)
		text = text[len(piece):]
		last = text == ""
		clean, err := s.Push(piece, last)
		if err != nil {
			return "", fmt.Errorf("redact the beginning of a text: %w", err)
		}
		out.WriteString(clean)
	}
	return out.String(), nil
}

// truncateBytes returns the longest prefix of at most n bytes that ends with a whole rune.
func truncateBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// vocabulary are the words of a prompt by their stems, so that inflected forms match.
type vocabulary map[string]bool

// stemRunes is the length of a stem.
const stemRunes = 4

// common words reveal nothing about a prompt.
var common = func() vocabulary {
	v := vocabulary{}
	for _, w := range strings.Fields(`
		a about again all also am an and any are as at be because been but by can cannot could d
		did do does for from had has have help how i if in into is it its ll m may me might more
		most must my no not of on only or other our please re s she should so sorry some such t
		than that the their them then there these they this those to too unable up us ve was we
		were what when which who will with would you your`) {
		v[w] = true
	}
	return v
}()

// addText adds the words of a text.
func (v vocabulary) addText(text string) {
	eachWord(text, func(start, end int) {
		if w := strings.ToLower(text[start:end]); !common[w] {
			v[stem(w, stemRunes)] = true
		}
	})
}

// addJSON adds the words of all strings of a document.
func (v vocabulary) addJSON(doc []byte) {
	var value any
	if json.Unmarshal(doc, &value) != nil {
		v.addText(string(doc))
		return
	}
	v.addValue(value)
}

func (v vocabulary) addValue(value any) {
	switch value := value.(type) {
	case string:
		v.addText(value)
	case []any:
		for _, e := range value {
			v.addValue(e)
		}
	case map[string]any:
		for name, e := range value {
			v.addText(name)
			v.addValue(e)
		}
	}
}

// contains reports whether the prompt has a word in this or another form.
func (v vocabulary) contains(word string) bool {
	w := strings.ToLower(word)
	return !common[w] && (v[stem(w, stemRunes)] || v[stem(w, stemRunes-1)])
}

// redactedMarker replaces words of the prompt.
const redactedMarker = "[REDACTED]"

var marker = regexp.MustCompile(`\[REDACTED(:[^\[\]]{0,128})?\]`)

// redactWords replaces the words of the prompt and the text between them. Existing markers stay.
func (v vocabulary) redactWords(text string) string {
	var out strings.Builder
	done := 0
	for _, m := range marker.FindAllStringIndex(text, -1) {
		v.redactPlain(&out, text[done:m[0]])
		out.WriteString(text[m[0]:m[1]])
		done = m[1]
	}
	v.redactPlain(&out, text[done:])
	return out.String()
}

func (v vocabulary) redactPlain(out *strings.Builder, text string) {
	done, open := 0, false
	eachWord(text, func(start, end int) {
		known := v.contains(text[start:end])
		switch {
		case known && !open:
			out.WriteString(text[done:start])
			out.WriteString(redactedMarker)
		case !known:
			out.WriteString(text[done:end])
		}
		open, done = known, end
	})
	out.WriteString(text[done:])
}

func stem(word string, runes int) string {
	n := 0
	for i := range word {
		if n == runes {
			return word[:i]
		}
		n++
	}
	return word
}

// eachWord calls found for each word of a text. In scripts without spaces every letter is a word.
func eachWord(text string, found func(start, end int)) {
	start := -1
	flush := func(end int) {
		if start >= 0 {
			found(start, end)
		}
		start = -1
	}
	for i, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
			unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
			flush(i)
			found(i, i+utf8.RuneLen(r))
		case !unicode.In(r, unicode.L, unicode.M, unicode.N):
			flush(i)
		case start < 0:
			start = i
		}
	}
	flush(len(text))
}
