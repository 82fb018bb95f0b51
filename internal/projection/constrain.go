package projection

import (
	"fmt"
	"strings"
)

// spoken describes each constraint in a sentence, for a vendor without the keyword. An empty
// sentence means that the constraint has no effect.
var spoken = map[string]func(v *value) string{
	"minLength":         counted("At least %s.", "character"),
	"maxLength":         counted("At most %s.", "character"),
	"minItems":          counted("At least %s.", "item"),
	"maxItems":          counted("At most %s.", "item"),
	"minProperties":     counted("At least %s.", "member"),
	"maxProperties":     counted("At most %s.", "member"),
	"minContains":       counted("At least %s of that kind.", "item"),
	"maxContains":       counted("At most %s of that kind.", "item"),
	"pattern":           quoted("Matches the regular expression %s."),
	"format":            quoted("In the format %s."),
	"contentEncoding":   quoted("Encoded as %s."),
	"contentMediaType":  quoted("Of the media type %s."),
	"minimum":           quoted("At least %s."),
	"maximum":           quoted("At most %s."),
	"exclusiveMinimum":  quoted("More than %s."),
	"exclusiveMaximum":  quoted("Less than %s."),
	"multipleOf":        quoted("A multiple of %s."),
	"uniqueItems":       unique,
	"contains":          satisfied("Some items satisfy this JSON Schema: %s"),
	"propertyNames":     satisfied("The names of members satisfy this JSON Schema: %s"),
	"dependentRequired": dependent,
}

// bounds lists the constraints of each type of value, in the order of their sentences.
var bounds = map[kinds][]string{
	strs:    {"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"},
	numbers: {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
	arrays:  {"minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"},
	objects: {"minProperties", "maxProperties", "propertyNames", "dependentRequired"},
}

// noteShare is the number of bytes of a note that count as one place.
const noteShare = 64

// constrain adds a schema's constraints to a node: as the vendor's keywords, otherwise as
// sentences. If merging left two of one name, one becomes a sentence.
func (b *builder) constrain(n *node, s *value, of kinds) {
	for _, keyword := range bounds[of] {
		said := false
		for _, f := range s.fields {
			switch {
			case f.name != keyword:
			case !said && b.dialect.takes(f):
				n.keep = append(n.keep, f)
				said = true
			default:
				if sentence := spoken[keyword](f.value); sentence != "" && b.room(len(sentence)/noteShare) {
					n.notes = append(n.notes, sentence)
					b.rewrite(s.at, []string{keyword}, RewriteDescription, "%s is put into the description, because it is not enforced", keyword)
				}
			}
		}
	}
}

// counted describes a number of things. A lower limit of 0 has no effect.
func counted(format, thing string) func(*value) string {
	return func(v *value) string {
		switch {
		case v.plain == "0" && strings.HasPrefix(format, "At least"):
			return ""
		case v.plain == "1":
			return fmt.Sprintf(format, "1 "+thing)
		default:
			return fmt.Sprintf(format, v.plain+" "+thing+"s")
		}
	}
}

// quoted describes a value as it is written.
func quoted(format string) func(*value) string {
	return func(v *value) string { return fmt.Sprintf(format, v.plain) }
}

func unique(v *value) string {
	if v.is(true) {
		return "No item twice."
	}
	return ""
}

// satisfied describes a schema.
func satisfied(format string) func(*value) string {
	return func(v *value) string {
		if rules := spelled(v); rules != "" {
			return fmt.Sprintf(format, rules)
		}
		return ""
	}
}

func dependent(v *value) string {
	const most = 100 // more are not worth reading
	var out []string
	for _, f := range v.fields[:min(len(v.fields), most)] {
		if with := f.value.texts(); len(with) > 0 && len(with) <= most {
			out = append(out, fmt.Sprintf("With %s also %s.", f.name, strings.Join(with, ", ")))
		}
	}
	return strings.Join(out, " ")
}
