package schema

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/strictjson"
)

// maxNullRounds limits how often nulls are dropped. One round drops as many as Validate reports, and
// a dropped member can reveal others.
const maxNullRounds = 32

// UnifyNulls validates a document in which null and absence are the same, because strict modes of
// providers write absent members as null. It drops the members that are null where their schema does
// not allow null; a null that the schema allows stays. A null reasoning at the root is dropped where
// that leaves the document valid, and added where the schema requires it and allows null: its absence
// is no reason to reject a document (OpenWOP envelope contract §5).
//
// A document that is invalid for other reasons is returned unchanged, with the violations that are
// left without the nulls.
func UnifyNulls(doc []byte, validate func([]byte) []Violation) (out []byte, wrong []Violation) {
	out, wrong = doc, validate(doc)
	for n := 0; len(wrong) > 0; n++ {
		paths := map[string]bool{}
		for _, v := range wrong {
			paths[v.InstancePath] = true
		}
		less, dropped := withoutNulls(out, "", func(path string) bool { return paths[path] })
		if !dropped || n == maxNullRounds {
			break
		}
		out, wrong = less, validate(less)
	}
	reasoning, given := strictjson.Member(out, memberReasoning)
	switch {
	case len(wrong) > 0 && !given && wrong[0].Keyword == "required" && wrong[0].InstancePath == "":
		if more, ok := withNullReasoning(out); ok && len(validate(more)) == 0 {
			return more, nil
		}
	case len(wrong) == 0 && string(reasoning) == "null":
		less, _ := withoutNulls(out, "", func(path string) bool { return path == "/"+memberReasoning })
		if len(validate(less)) == 0 {
			return less, nil
		}
	}
	if len(wrong) > 0 {
		return doc, wrong
	}
	return out, nil
}

const memberReasoning = "reasoning"

// withNullReasoning adds a null reasoning to an object.
func withNullReasoning(doc []byte) (out []byte, ok bool) {
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(doc), []byte("{"))
	if !ok {
		return nil, false
	}
	out = []byte(`{"` + memberReasoning + `":null`)
	if rest = bytes.TrimSpace(rest); !bytes.HasPrefix(rest, []byte("}")) {
		out = append(out, ',')
	}
	return append(out, rest...), true
}

// withoutNulls drops null members of objects at the chosen paths, which are JSON pointers. All other
// bytes stay as they are.
func withoutNulls(doc []byte, at string, drop func(path string) bool) (out []byte, dropped bool) {
	if strings.Count(at, "/") > strictjson.Default.MaxDepth { // each level reads what is below it
		return doc, false
	}
	switch strictjson.KindOf(doc) {
	case "an object":
		return withoutNullMembers(doc, at, drop)
	case "an array":
		return withoutNullsInItems(doc, at, drop)
	}
	return doc, false
}

// withoutNullMembers is withoutNulls for an object.
func withoutNullMembers(doc []byte, at string, drop func(path string) bool) (out []byte, dropped bool) {
	out = []byte("{")
	ok := strictjson.Each(doc, func(name, value []byte) {
		path := at + jsonpointer.Of(string(name))
		if string(value) == "null" && drop(path) {
			dropped = true
			return
		}
		less, changed := withoutNulls(value, path, drop)
		dropped = dropped || changed
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, strictjson.RenderPlain(string(name))...), ':'), less...)
	})
	if !ok || !dropped {
		return doc, false
	}
	return append(out, '}'), true
}

// withoutNullsInItems is withoutNulls for an array, whose own items stay.
func withoutNullsInItems(doc []byte, at string, drop func(path string) bool) (out []byte, dropped bool) {
	var items []json.RawMessage
	if json.Unmarshal(doc, &items) != nil {
		return doc, false
	}
	out = []byte("[")
	for i, item := range items {
		less, changed := withoutNulls(item, at+"/"+strconv.Itoa(i), drop)
		dropped = dropped || changed
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, less...)
	}
	if !dropped {
		return doc, false
	}
	return append(out, ']'), true
}
