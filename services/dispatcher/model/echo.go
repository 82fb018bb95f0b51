package model

import (
	"encoding/json"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Models repeat what they are given: the input, an example, the schema. A repeated document is the
// answer only if no other one is, and only as the last thing that the model writes. The schema itself
// never is.

// withoutEchoes marks the documents that repeat the prompt, and leaves out those that cannot be the
// answer.
func (e *emission) withoutEchoes(text string, x extraction) extraction {
	if len(x.documents) == 0 {
		return x
	}
	var known map[string]bool
	if x.documents[0].path != pathDirect {
		known = e.knownDocuments()
	}
	kept := make([]document, 0, len(x.documents))
	for _, d := range x.documents {
		switch {
		case e.isSchema(d.raw):
			continue
		case known[canonical(d.raw)]:
			if d.echo = true; !d.alone || !endsAnswer(text[d.end:]) {
				continue
			}
		}
		kept = append(kept, d)
	}
	x.repeats = len(kept) == 0
	x.documents = kept
	return x
}

// isSchema reports whether a document is the schema of the request.
func (e *emission) isSchema(raw json.RawMessage) bool {
	if isEmpty(raw) {
		return false
	}
	return len(e.expected.schema) > 0 && strictjson.Same(raw, e.expected.schema) ||
		len(e.expected.turn) > 0 && strictjson.Same(raw, e.expected.turn)
}

// endsAnswer reports whether nothing but marks follows in an answer.
func endsAnswer(rest string) bool {
	return onlyMarks(strings.ReplaceAll(rest[:min(len(rest), maxLine)], "\n", " "))
}

const (
	// maxPrompt limits the text of a prompt that is searched for documents, in bytes, maxKnown the number
	// of these.
	maxPrompt = 1 << 20
	maxKnown  = 1024
)

// knownDocuments returns the documents that the model got: those of the prompt, and the examples of the
// schema.
func (e *emission) knownDocuments() map[string]bool {
	known := map[string]bool{}
	room := maxPrompt
	for _, text := range promptTexts(e.request) {
		text = text[:min(len(text), room)]
		room -= len(text)
		addDocuments(known, text)
	}
	members := strictjson.Object(e.expected.schema)
	var examples []json.RawMessage
	_ = json.Unmarshal(members["examples"], &examples) // it may be missing
	for _, raw := range append(examples, members["example"], members["default"]) {
		addDocument(known, raw)
	}
	return known
}

// promptTexts returns the texts of a prompt.
func promptTexts(req provider.Request) []string {
	texts := []string{req.System}
	for _, m := range req.Messages {
		parts, err := m.Parts()
		if err != nil {
			continue // the call reports it
		}
		for _, p := range parts {
			texts = append(texts, p.Text)
		}
	}
	return texts
}

// addDocuments adds the outermost objects and arrays of a text.
func addDocuments(known map[string]bool, text string) {
	budget := searchBudget(len(text))
	for at := 0; at < len(text) && budget > 0; {
		next := strings.IndexAny(text[at:], "{[")
		if next < 0 {
			return
		}
		at += next
		var raw json.RawMessage
		dec := json.NewDecoder(strings.NewReader(text[at:]))
		err := dec.Decode(&raw)
		if err != nil {
			inspect(text[at:], &budget) // the cost of an attempt
			at++
			continue
		}
		budget -= len(raw)
		addDocument(known, raw)
		at += len(raw)
	}
}

func addDocument(known map[string]bool, raw json.RawMessage) {
	if len(raw) > 0 && !isEmpty(raw) && !isNumbers(raw) && len(known) < maxKnown {
		known[canonical(raw)] = true
	}
}

// canonical returns a document without space, with sorted members.
func canonical(raw json.RawMessage) string {
	v, err := strictjson.Value(raw, unlimited(raw))
	if err != nil {
		return string(raw)
	}
	return string(strictjson.Render(v))
}
