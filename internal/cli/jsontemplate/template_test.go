package jsontemplate_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/jsontemplate"
)

const document = `{"runs":[{"runId":"r1","status":"failed","tags":["a","b"],"n":3},{"runId":"r2","status":"completed","tags":[],"n":12}],
	"count":2,"none":null,"yes":true,"no":false,"empty":"","text":"<é>","object":{"b":1,"a":2},"deep":{"er":{"x":"y"}}}`

func read(t testing.TB, doc string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return v
}

func execute(text string, v any) (string, error) {
	tmpl, err := jsontemplate.Parse("t", text)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = tmpl.Execute(&b, v)
	return b.String(), err
}

// theirs is what text/template makes of it.
func theirs(text string, v any) (string, error) {
	tmpl, err := template.New("t").Option("missingkey=zero").Funcs(template.FuncMap{"json": func(v any) (string, error) {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		err := enc.Encode(v)
		return strings.TrimSpace(b.String()), err
	}}).Parse(text)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = tmpl.Execute(&b, v)
	return b.String(), err
}

// alike are templates that text/template executes, too.
var alike = []string{
	`plain`,
	`{{.runs}} {{.object}} {{.none}} {{.missing}} {{.yes}} {{.count}} {{.text}}`,
	`{{range .runs}}{{.runId}} {{.status}}{{"\n"}}{{end}}`,
	`{{range $i, $r := .runs}}{{$i}}={{$r.runId}},{{range $r.tags}}{{.}}{{else}}-{{end}};{{end}}`,
	`{{range $r := .runs}}{{$r.runId}}{{$.count}}{{end}}`,
	`{{range $k, $v := .object}}{{$k}}{{$v}}{{end}}`,
	`{{range .object}}{{.}}{{end}}`,
	`{{range .none}}x{{else}}none{{end}}{{range .missing}}x{{end}}`,
	`{{range .runs}}{{if eq .status "failed"}}{{continue}}{{end}}{{.runId}}{{end}}`,
	`{{range .runs}}{{if eq .status "failed"}}{{break}}{{end}}{{.runId}}{{end}}`,
	`{{range .runs}}{{range .tags}}{{.}}{{break}}{{end}}|{{end}}`,
	`{{range .object}}{{.}}{{break}}{{end}}`,
	`{{if .yes}}y{{else}}n{{end}}{{if .no}}y{{else if .count}}c{{else}}n{{end}}{{if .empty}}y{{end}}{{if not .none}}nn{{end}}`,
	`{{with .deep.er}}{{.x}}{{end}}{{with .none}}x{{else}}none{{end}}{{with .none}}x{{else with .text}}{{.}}{{end}}`,
	`{{with $x := .deep}}{{$x.er.x}}{{end}}`,
	`{{$x := 1}}{{range .runs}}{{$x = .runId}}{{end}}{{$x}}`,
	`{{$x := 1}}{{if .yes}}{{$x := 2}}{{$x}}{{end}}{{$x}}`,
	`{{len .runs}}{{len .text}}{{len .object}}{{.runs | len}}`,
	`{{index .runs 0}}{{index .runs 1 "tags"}}{{index .object "a"}}{{(index .runs 0).runId}}{{index .object "none"}}`,
	`{{slice .text 1}}{{slice .text 0 1}}{{slice (index .runs 0 "tags") 1}}{{slice .text}}`,
	`{{print .text 1 2 "x"}}{{println .text 1}}{{printf "%-8s|%v|%q" .text .count .text}}{{printf "%05d %.2f %t" 42 1.5 true}}`,
	`{{and .yes .text}}{{and .no .text}}{{or .no .text}}{{or .yes .text}}{{and .none 1}}{{or .empty 2}}`,
	`{{.text | printf "%s-%s" "a" | printf "%q"}}`,
	`{{eq .text "<é>"}}{{eq .status "x"}}{{ne .text "a"}}{{eq 1 2 1}}{{lt 1 2}}{{le 2 2}}{{gt 1.5 0.5}}{{ge "a" "b"}}{{lt "a" "b"}}`,
	`{{eq .yes true}}{{eq .none nil}}`,
	`{{define "one"}}[{{.runId}}{{$.n}}]{{end}}{{range .runs}}{{template "one" .}}{{end}}`,
	`{{define "x"}}{{.}}{{end}}{{template "x"}}{{block "b" .text}}({{.}}){{end}}`,
	`{{/* nothing */}}{{- .text -}}   {{- 0x10 }} {{'a'}} {{1e3}} {{"q\"q"}} {{` + "`raw`" + `}}`,
	`{{json .runs}}{{json .text}}{{.none | json}}`,
	`{{not (and .yes (eq .count .count))}}`,
	`{{define "only"}}{{end}}`,
	`{{printf "%.1f %f %g" 2.0 1e3 1.}}{{1e6}} {{-0.0}} {{0x1p-2}} {{0x1e}} {{'.'}} {{'e'}} {{-3}}`,
	`{{range 3}}{{.}}{{end}}{{range $i := 2}}{{$i}}{{end}}{{range $i := len .runs}}{{$i}}{{else}}x{{end}}{{range 0}}x{{else}}none{{end}}`,
	`{{range .runs}}{{range .tags}}{{.}}{{else}}{{break}}{{end}}z{{end}}`,
	`{{range .runs}}{{range .none}}{{else}}{{range .none}}{{else}}{{break}}{{end}}A{{end}}B{{end}}`,
	`{{range .runs}}{{range .tags}}{{.}}{{else}}{{continue}}{{end}}z{{end}}`,
	`{{$x := 1}}{{print ($x := 2)}}{{$x}}{{if ($y := .text)}}{{$y}}{{end}}`,
}

// What text/template makes of a document is made here.
func TestExecute_DoesAsTextTemplate(t *testing.T) {
	t.Parallel()
	doc := read(t, document)
	for _, text := range alike {
		want, err := theirs(text, doc)
		require.NoError(t, err, text)
		got, err := execute(text, doc)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

// Where text/template knows numbers of JSON as text only, and stops at a member of null.
func TestExecute_KnowsJSON(t *testing.T) {
	t.Parallel()
	doc := read(t, `{"n":3,"big":9007199254740993,"zero":0,"half":0.5,"none":null,"list":["a","b"],"one":1,"whole":1.0,"tenth":0.1,
		"beyond":18446744073709551614,"beyond1":18446744073709551615,"tiny":1e-900,"zeros":0.00e5}`)
	for text, want := range map[string]string{
		`{{if gt .n 2}}more{{end}}{{eq .n 3}}{{eq .n "3"}}`:                                 "moretruefalse",
		`{{lt .half .n}}{{lt .n .half}}`:                                                    "truefalse",
		`{{eq .big 9007199254740992}}{{.big}}`:                                              "false9007199254740993",
		`{{if .zero}}x{{else}}zero{{end}}`:                                                  "zero",
		`{{.none.a.b}}{{.missing.a}}`:                                                       "<no value><no value>",
		`{{index .list .one}}`:                                                              "b",
		`{{index .list .whole}}{{eq .whole .one 1}}{{range .whole}}{{.}}{{end}}`:            "btrue0",
		`{{index .none "a"}}{{index . "missing" "x"}}`:                                      "<no value><no value>",
		`{{eq .half 0.5}}{{eq .tenth 0.1}}{{eq .big 9007199254740992.0}}`:                   "truetruefalse",
		`{{eq .beyond .beyond1}}{{lt .beyond .beyond1}}`:                                    "falsetrue",
		`{{if .tiny}}more{{end}}{{if .zeros}}x{{end}}{{if 0.0}}x{{end}}{{if -0.0}}x{{end}}`: "more",
		`{{printf "%.2f|%5d|%05d|%x|%v|%s|%8.1e" .half .n .n .big .half .n .beyond}}`:       "0.50|    3|00003|20000000000001|0.5|3| 1.8e+19",
		`{{printf "%d %d" .beyond .half}}`:                                                  "18446744073709551614 %!d(string=0.5)",
		`{{eq .list nil}}{{eq .none nil}}{{eq .list "a"}}{{ne true false}}`:                 "falsetruefalsetrue",
	} {
		got, err := execute(text, doc)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestExecute_SaysWhatIsWrongAndWhere(t *testing.T) {
	t.Parallel()
	doc := read(t, document)
	for text, want := range map[string]string{
		`{{`:                          "t:1: unclosed action",
		`{{nosuch .}}`:                `t:1: function "nosuch" not defined`,
		`{{call .x}}`:                 `t:1: function "call" not defined`,
		`{{end}}`:                     "t:1: unexpected {{end}}",
		`{{$x}}`:                      `t:1: undefined variable "$x"`,
		`{{.text.x}}`:                 `t:1:7: at <.text.x>: a string has no member "x"`,
		"\n{{range .text}}{{end}}":    "t:2:8: at <.text>: range over a string: want an array, an object or a whole number",
		`{{.text 1}}`:                 "t:1:2: at <.text 1>: .text is no function: it takes no arguments",
		`{{1 | .text}}`:               "t:1:6: at <.text>: .text is no function: it takes no arguments",
		`{{len .count}}`:              "t:1:2: at <len>: len: a number has no length",
		`{{len}}`:                     "t:1:2: at <len>: len: want 1 arguments, not 0",
		`{{index .runs 2}}`:           "index: there is no 2: want 0 to 1",
		`{{index .runs -1}}`:          "index: there is no -1: want 0 to 1",
		`{{index .runs "x"}}`:         "index: a string is no position: want a whole number",
		`{{index .object 1}}`:         "index: a number names no member: want a string",
		`{{index .count 1}}`:          "index: a number has no elements",
		`{{index}}`:                   "index: want a value, and what to look for in it",
		`{{slice .text 3 2}}`:         "slice: there is no 3: want 0 to 2",
		`{{slice .object 1}}`:         "slice: an object has no parts",
		`{{lt .runs 1}}`:              "lt: an array and a number are not compared",
		`{{eq .runs .runs}}`:          "eq: an array and an array are not compared",
		`{{lt 1e999 1}}`:              `t:1: illegal number syntax: "1e999"`,
		`{{range 1.5}}{{end}}`:        "range over a number: want an array, an object or a whole number",
		`{{9223372036854775808}}`:     "9223372036854775808 is too large: want at most 9223372036854775807",
		`{{index (slice .runs 2) 0}}`: "index: there is no 0: it is empty",
		`{{index .runs 0.5}}`:         "index: a number is no position: want a whole number",
		`{{eq 1}}`:                    "eq: want two arguments or more",
		`{{printf 1}}`:                "printf: the format is a number: want a string",
		`{{and}}`:                     "and: want one argument or more",
		`{{1i}}`:                      "1i is no value of JSON",
		`{{template "nosuch"}}`:       `template "nosuch" is not defined`,
		`{{define "x"}}{{template "x"}}{{end}}{{template "x"}}`:                                                                         "templates and blocks are more than 10000 deep within each other",
		`{{define "x"}}` + strings.Repeat("{{if 1}}", 6000) + `{{template "x"}}` + strings.Repeat("{{end}}", 6001) + `{{template "x"}}`: "{{if 1}}{{if 1}}{{if 1}}{{if 1}}{{if 1}}{{if 1}}{{if 1}}{{if…>: templates and blocks are more than 10000 deep within each other",
	} {
		_, err := execute(text, doc)
		require.ErrorContains(t, err, want, text)
		require.Regexp(t, `^t:\d+:`, err.Error(), "it begins with the place")
	}
}

func TestExecute_ComparesNumbersThatCanBeWrittenOut(t *testing.T) {
	t.Parallel()
	_, err := execute(`{{eq .a .b}}`, read(t, `{"a":1e400000000,"b":1e500000000}`))
	require.EqualError(t, err, "t:1:2: at <eq>: eq: numbers are compared up to an exponent of 400")
}

// No template brings the program down, and one that text/template executes, too, comes to the same. The document has no
// numbers, which are the difference; a template may not last for long, or print as wide as it likes.
func FuzzExecute(f *testing.F) {
	for _, text := range alike {
		f.Add(text)
	}
	doc := read(f, `{"list":[{"id":"r1","tags":["a","b"]},{"id":"r2","tags":[]}],"none":null,"yes":true,"no":false,"empty":"","text":"<é>","object":{"b":"1","a":"2"}}`)
	large := regexp.MustCompile(`[0-9][0-9a-zA-Z_.]{2}|'|\d\s*e`)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1000 || strings.Contains(text, "%") || strings.Count(text, "range") > 3 || large.MatchString(text) {
			return
		}
		got, err := execute(text, doc)
		if err != nil || strings.Contains(text, "template") || strings.Contains(text, "block") { // theirs may bring the program down
			return
		}
		want, err := theirs(text, doc)
		if err == nil {
			require.Equal(t, want, got, text)
		}
	})
}
