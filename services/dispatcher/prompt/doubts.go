package prompt

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/schema"
)

// ContextNames are the names of the source context.
func ContextNames() []string { return []string{"runId", "nodeId", "workflowId", "tenant"} }

// otherTags match tags of other template languages, which this host leaves unchanged.
var otherTags = []*regexp.Regexp{
	regexp.MustCompile(`\{\{[#^/!>=][^{}]*\}\}`),
	regexp.MustCompile(`\{\{[{&]?\s*[a-zA-Z_][a-zA-Z0-9_]*\s*[.|\[(][^{}]*\}\}`),
	regexp.MustCompile(`\{%[^{}%]*%\}`),
}

// openTag matches a placeholder that lacks its second closing brace.
var openTag = regexp.MustCompile(`\{\{&?\s*[a-zA-Z_][a-zA-Z0-9_]{0,63}\s*(\}[^}]|\}?$)`)

// Doubts returns what is probably a mistake in a valid template.
func (t *Template) Doubts() (found []Problem) {
	doubt := func(path, format string, args ...any) {
		found = append(found, invalid(path, "%s", strings.ReplaceAll(fmt.Sprintf(format, args...), "?; ", "? ")))
	}
	var names []string
	for _, v := range t.Variables {
		names = append(names, v.Name)
	}
	placed := t.doubtPlaces(names, doubt)
	for i, v := range t.Variables {
		t.doubtVariable(v, "/variables/"+strconv.Itoa(i), placed[v.Name], doubt)
	}
	t.doubtText(doubt)
	for i, tag := range t.Tags {
		if slices.Contains(t.Tags[:i], tag) {
			doubt("/tags/"+strconv.Itoa(i), "the tag %q is there twice; remove one of the two", tag)
		}
	}
	return found
}

// doubtPlaces reports places in the text for variables that are not declared, and returns the names of all.
func (t *Template) doubtPlaces(names []string, doubt func(path, format string, args ...any)) map[string]bool {
	placed := map[string]bool{}
	for _, m := range placeholder.FindAllStringSubmatch(t.Text, -1) {
		name := placeName(m)
		if !placed[name] && !slices.Contains(names, name) {
			meant := ""
			if near := schema.Near(name, names); near != "" {
				meant = "; did you mean " + near + "?"
			}
			doubt("/text", "{{%s}} is not among the variables%s; it counts as an optional input, which is empty if no port has its name", name, meant)
		}
		placed[name] = true
	}
	return placed
}

// doubtText reports what a call gets otherwise than it is meant.
func (t *Template) doubtText(doubt func(path, format string, args ...any)) {
	if strings.TrimSpace(t.Text) == "" {
		doubt("/text", "the text is empty")
	}
	for _, tag := range otherTags {
		if found := tag.FindString(t.Text); found != "" {
			doubt("/text", "%s stays as it is; the only tags are {{name}}", found)
		}
	}
	if found := openTag.FindString(t.Text); found != "" {
		doubt("/text", "%s is not closed and stays as it is; want {{name}}", strings.TrimSpace(found))
	}
}

// doubtVariable reports a variable without effect, and one that gets no value.
func (t *Template) doubtVariable(v Variable, at string, placed bool, doubt func(path, format string, args ...any)) {
	if !placed {
		form := regexp.MustCompile(`\$?\{\s*` + regexp.QuoteMeta(v.Name) + `\s*\}|<` + regexp.QuoteMeta(v.Name) + `>`)
		if other := form.FindString(t.Text); other != "" && !openTag.MatchString(t.Text) {
			doubt("/text", "%s stays as it is; write {{%s}}", other, v.Name)
		} else {
			doubt(at+"/name", "the text has no place for the variable %s; write {{%s}}, or remove the variable", v.Name, v.Name)
		}
	}
	if v.Required && !isMissing(v.Default) {
		doubt(at+"/defaultValue", "has no effect, because the variable is required; set required to false, or remove the default")
	}
	switch v.source() {
	case FromSecret:
		doubt(at+"/source", "no host has secrets for prompts, except with test seams; calls fail with credential_unavailable")
	case FromContext:
		path, _ := parsePath(v.ExtractPath)
		known := ContextNames()
		if !slices.Contains(known, v.Name) && (len(path) == 0 || !slices.Contains(known, path[0].name)) {
			doubt(at+"/name", "the context has no such name, so only variableOverrides can set it; it has %s", strings.Join(known, ", "))
		}
	case FromInput, FromVariable:
	}
}
