package schema

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
)

// Validators disagree about a reference to a value that is not a schema position, such as an
// example, and the library restarts with the whole document for each. Definitions have their own
// keyword.

// idWeight is the weight of an $id in addition to its value: all of them are visited for each
// subschema.
const idWeight = 8

// pointing is a reference by pointer, and the resource it is in.
type pointing struct {
	from     *position
	keyword  string
	resource map[string]any
	ref      string
}

// lead records the references of a position, and its $id.
func (s *scale) lead(p *position) {
	if id, ok := p.object["$id"].(string); ok {
		s.weight += idWeight
		id, _, _ = strings.Cut(id, "#")
		last := lastStep(id)
		s.resources[last] = append(s.resources[last], p.object)
	}
	for _, k := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if ref, ok := p.object[k].(string); ok && strings.Contains(ref, "#/") && !strings.HasPrefix(ref, metaSchemas) {
			s.leads = append(s.leads, pointing{p, k, p.resource(), ref})
		}
	}
}

// metaSchemas is the prefix of the dialect's own schemas.
const metaSchemas = "https://json-schema.org/draft/2020-12/"

func lastStep(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }

// resource returns the root for pointers at p: the nearest schema with an $id.
func (p *position) resource() map[string]any {
	for ; p.up != nil; p = p.up {
		if _, ok := p.object["$id"].(string); ok {
			break
		}
	}
	return p.object
}

// unplaced finds a reference to a value that is not a schema position.
func (s *scale) unplaced(doc any) *Error {
	const most = 16 // resources with the same last path element
	root, _ := doc.(map[string]any)
	for _, l := range s.leads {
		id, frag, _ := strings.Cut(l.ref, "#")
		if plain, err := url.PathUnescape(frag); err == nil {
			frag = plain
		}
		from := []map[string]any{l.resource, root}
		if id != "" {
			named := s.resources[lastStep(id)]
			from = slices.Concat(named[:min(len(named), most)], from)
		}
		there := false
		if !slices.ContainsFunc(from, func(o map[string]any) bool {
			value, schema := stands(o, frag)
			there = there || value
			return schema
		}) && there {
			return &Error{Path: l.from.pointer(l.keyword), Reason: fmt.Sprintf("the reference leads to %q, where no schema stands; put the schema in $defs", "#"+frag)}
		}
	}
	return nil
}

// stands reports whether a pointer leads to a value, and whether that is a schema position.
func stands(from map[string]any, pointer string) (value, schema bool) {
	var v any = from
	inside := "" // the keyword that holds the next schemas
	schema = true
	for token := range strings.SplitSeq(pointer[1:], "/") {
		if strings.ContainsRune(token, '~') {
			token = jsonpointer.Unescape(token)
		}
		var there bool
		switch w := v.(type) {
		case map[string]any:
			v, there = w[token]
			switch {
			case inside != "":
				inside = ""
			case !schema:
			case slices.Contains(holdMap, token):
				inside = token
			default:
				_, isList := v.([]any)
				switch {
				case isList && slices.Contains(holdList, token):
					inside = token
				default:
					schema = slices.Contains(holdOne, token)
				}
			}
		case []any:
			i, err := strconv.Atoi(token)
			if there = err == nil && i >= 0 && i < len(w); there {
				v = w[i]
			}
			inside = ""
		}
		if !there {
			return false, false
		}
	}
	return true, schema && inside == "" && isSchema(v)
}
