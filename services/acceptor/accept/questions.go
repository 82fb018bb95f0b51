package accept

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// checkQuestions refuses a clarification.request that could not be answered: a question's schema
// cannot be applied or accepts no value, or two questions have the same id (OpenWOP host contract
// §6.1: the answer must satisfy the schema). Answers are judged by the same compiler.
func (e *execution) checkQuestions() *Refusal {
	var ask struct {
		Questions []question `json:"questions"`
	}
	if e.env.Type != KindClarificationRequest || strictjson.Read(e.env.Payload, &ask) != nil {
		return nil // of another kind, or the host replaced the kind's schema
	}
	r := &Refusal{Status: Invalid, Code: fault.EnvelopeInvalid, Message: "a question could not be answered"}
	asked := map[string]bool{}
	for i, q := range ask.Questions {
		at := "/payload/questions/" + strconv.Itoa(i)
		if asked[q.ID] {
			r.Details = append(r.Details, Detail{
				InstancePath: at + "/id",
				Keyword:      "unique",
				Message:      "another question has this id; every question needs its own",
			})
		}
		asked[q.ID] = true
		if d := q.checkSchema(); d != nil {
			d.InstancePath = at + "/schema" + d.InstancePath
			r.Details = append(r.Details, *d)
		}
	}
	if len(r.Details) == 0 {
		return nil
	}
	return r
}

// checkSchema returns nil if a value can satisfy the question's schema. The paths are below the
// schema.
func (q question) checkSchema() *Detail {
	if len(q.Schema) == 0 {
		return nil
	}
	if _, err := schema.Compile("schema", q.Schema); err != nil {
		d := &Detail{Keyword: "schema", Message: "must be a JSON Schema of draft 2020-12 without outside references"}
		if e, ok := errors.AsType[*schema.Error](err); ok {
			d.InstancePath, d.Message = e.Path, e.Reason
		}
		return d
	}
	if at, found := findContradiction("", q.Schema); found {
		return &Detail{InstancePath: at, Keyword: "schema", Message: "no value satisfies the schema here"}
	}
	_, problems := projection.Compile(q.Schema, projection.OpenAI)
	i := slices.IndexFunc(problems, func(p projection.Problem) bool { return p.Rule == projection.RuleNothingFits })
	if i < 0 {
		return nil
	}
	return &Detail{InstancePath: problems[i].Path, Keyword: "schema", Message: "no value satisfies the schema here"}
}

// bounds are the keywords of a lower and an upper limit.
var bounds = [][2]string{ //nolint:gochecknoglobals // a constant
	{"minimum", "maximum"},
	{"minLength", "maxLength"},
	{"minItems", "maxItems"},
	{"minProperties", "maxProperties"},
	{"minContains", "maxContains"},
}

// plainValues are keywords whose values are not schemas.
var plainValues = []string{"enum", "const", "default", "examples"} //nolint:gochecknoglobals // a constant

// schemasByName are keywords whose values are objects of schemas.
var schemasByName = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"} //nolint:gochecknoglobals // a constant

// findContradiction finds a part of a schema that rejects every value by itself: a lower limit above
// the upper one, or the negation of a schema that accepts everything. It returns its path.
func findContradiction(at string, part json.RawMessage) (path string, found bool) {
	var list []json.RawMessage
	if json.Unmarshal(part, &list) == nil {
		for i, item := range list {
			if path, found := findContradiction(at+"/"+strconv.Itoa(i), item); found {
				return path, true
			}
		}
		return "", false
	}
	members := strictjson.Object(part)
	for _, b := range bounds {
		low, lerr := strconv.ParseFloat(string(members[b[0]]), 64)
		high, herr := strconv.ParseFloat(string(members[b[1]]), 64)
		if lerr == nil && herr == nil && low > high {
			return at, true
		}
	}
	if not := string(members["not"]); not == "true" || not == "{}" {
		return at, true
	}
	return findInMembers(at, members)
}

// findInMembers is findContradiction for the parts of a schema.
func findInMembers(at string, members map[string]json.RawMessage) (path string, found bool) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		below, find := at+"/"+escapePointer.Replace(name), findContradiction
		switch {
		case slices.Contains(plainValues, name):
			continue
		case slices.Contains(schemasByName, name):
			find = findInNamed
		}
		if path, found := find(below, members[name]); found {
			return path, true
		}
	}
	return "", false
}

// findInNamed is findContradiction for an object of schemas.
func findInNamed(at string, part json.RawMessage) (path string, found bool) {
	named := strictjson.Object(part)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if path, found := findContradiction(at+"/"+escapePointer.Replace(name), named[name]); found {
			return path, true
		}
	}
	return "", false
}

// escapePointer escapes a member's name in a JSON pointer (RFC 6901).
var escapePointer = strings.NewReplacer("~", "~0", "/", "~1") //nolint:gochecknoglobals // a constant
