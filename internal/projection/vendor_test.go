package projection_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/schema"
)

// nested returns n objects inside each other.
func nested(n int) string {
	return strings.Repeat(`{"type":"object","required":["p"],"properties":{"p":`, n) + `{"type":"string"}` + strings.Repeat(`}}`, n)
}

// listed returns n items.
func listed(n int, item func(i int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	return strings.Join(items, ",")
}

// The limits of each vendor: a schema at the limit has a projection, one beyond is refused with the
// place and the rule.
func TestCompile_KeepsTheLimitsOfEachVendor(t *testing.T) {
	t.Parallel()
	object := func(n int) string {
		return `{"type":"object","properties":{` + listed(n, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"null"}`, i) }) +
			`},"required":[` + listed(n, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) + `]}`
	}
	enum := func(n, length int) string {
		return in(`{"enum":[` + listed(n, func(i int) string { return fmt.Sprintf(`"%0*d"`, length, i) }) + `]}`)
	}
	for _, v := range projection.Vendors() {
		d, ok := projection.DialectOf(v)
		require.True(t, ok)
		require.NotEmpty(t, d.Mode, v)
		require.NotEmpty(t, d.Source, v)
		takes := func(source string) {
			t.Helper()
			_, problems := projection.Compile(json.RawMessage(source), v)
			require.Empty(t, problems, v)
		}
		refuses := func(source, path, rule string) {
			t.Helper()
			_, problems := projection.Compile(json.RawMessage(source), v)
			require.Len(t, problems, 1, v)
			require.Equal(t, []string{path, rule}, []string{problems[0].Path, problems[0].Rule})
		}
		if d.Depth > 0 {
			takes(nested(d.Depth))
			refuses(nested(d.Depth+1), strings.Repeat("/properties/p", d.Depth), projection.RuleDepth)
		} else {
			takes(nested(20))
		}
		if d.Properties == 100 {
			takes(object(100))
			refuses(object(101), "", projection.RuleProperties)
		} else {
			takes(object(500))
		}
		if d.EnumValues > 0 {
			takes(enum(d.EnumValues, 4))
			refuses(enum(d.EnumValues+1, 4), "", projection.RuleEnumValues)
		} else {
			takes(enum(1500, 4))
		}
		if d.LargeEnum > 0 {
			long := d.LargeEnumText/d.LargeEnum + 1
			takes(enum(d.LargeEnum, long))
			refuses(enum(d.LargeEnum+1, long), "/properties/m", projection.RuleEnumValues)
		}
	}
}

// Every constraint of every vendor is in the projection or in the description.
func TestCompile_LosesNoConstraint(t *testing.T) {
	t.Parallel()
	for keyword, member := range map[string]string{
		"minLength": `{"type":"string","minLength":7}`, "maxLength": `{"type":"string","maxLength":7}`,
		"pattern": `{"type":"string","pattern":"^7$"}`, "format": `{"type":"string","format":"date7"}`,
		"minimum": `{"type":"number","minimum":7}`, "maximum": `{"type":"number","maximum":7}`,
		"exclusiveMinimum": `{"type":"number","exclusiveMinimum":7}`, "exclusiveMaximum": `{"type":"number","exclusiveMaximum":7}`,
		"multipleOf": `{"type":"number","multipleOf":7}`,
		"minItems":   `{"type":"array","items":{"type":"null"},"minItems":7}`, "maxItems": `{"type":"array","items":{"type":"null"},"maxItems":7}`,
	} {
		for _, v := range projection.Vendors() {
			p := project(t, in(member), v)
			require.Contains(t, string(p.Schema()), "7", "%s %s", v, keyword)
			d, _ := projection.DialectOf(v)
			said := false
			for _, r := range p.Rewrites() {
				said = said || r.Rule == projection.RewriteDescription && r.Path == "/properties/m/"+keyword && r.Vendor == v
			}
			sent := strings.Contains(string(p.Schema()), `"`+keyword+`":`)
			require.NotEqual(t, sent, said, "%s %s: sent, or named as rewritten", v, keyword)
			require.True(t, sent || said)
			if sent {
				require.Contains(t, d.Keywords, keyword)
			}
		}
	}
}

// Anthropic rejects requests whose properties have other names.
func TestCompile_RenamesPropertiesThatAVendorRejects(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 70)
	source := `{"type":"object","required":["Betrag (€)","a/b"],"additionalProperties":{"type":"integer"},"properties":{
		"Betrag (€)":{"type":"number"},"a/b":{"type":"string"},"a_b":{"type":"string"},"":{"type":"string"},"` + long + `":{"type":"boolean"},
		"u":{"anyOf":[{"type":"object","required":["art!"],"properties":{"art!":{"const":"x"}}},{"type":"object","required":["art!"],"properties":{"art!":{"const":"y"},"z?":{"type":"string"}}}]}}}`
	for _, v := range projection.Vendors() {
		p := project(t, source, v)
		roundTrip(t, p, `{"Betrag (€)":1.50,"a/b":"x"}`)
		answer := roundTrip(t, p, `{"Betrag (€)":1.50,"a/b":"x","a_b":"y","":"e","`+long+`":true,"u":{"art!":"y","z?":"w"},"more/ä":7}`)
		if v != projection.Anthropic {
			require.Contains(t, answer, `"Betrag (€)":1.50`)
			continue
		}
		require.Contains(t, answer, `"Betrag____":1.50`)
		require.Contains(t, answer, `"a_b_2":"x"`)
		require.Contains(t, answer, `"art_":"y"`)
		require.Contains(t, string(p.Schema()), `Its name is \"Betrag (€)\".`)
		var named []string
		for _, r := range p.Rewrites() {
			if r.Rule == projection.RewriteName {
				named = append(named, r.Path)
			}
		}
		require.Equal(t, []string{
			"/properties/", "/properties/Betrag (€)", "/properties/a~1b", "/properties/" + long,
			"/properties/u/anyOf/0/properties/art!", "/properties/u/anyOf/1/properties/art!", "/properties/u/anyOf/1/properties/z?",
		}, named)
	}
}

func TestLintFor_NamesPropertiesThatAVendorRejects(t *testing.T) {
	t.Parallel()
	doc := []byte(`{"type":"object","properties":{"a b":{"type":"null"}},"required":["a b"],"additionalProperties":false}`)
	problems := projection.LintFor(projection.Anthropic, doc)
	require.Len(t, problems, 1)
	require.Equal(t, "/properties/a b", problems[0].Path)
	require.Equal(t, projection.RuleName, problems[0].Rule)
	require.Empty(t, projection.LintFor(projection.OpenAI, doc))
}

// Values that are not objects, for every vendor: as the member "value" where the root must be an
// object, else as they are.
func TestCompile_WrapsWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for source, value := range map[string]string{
		`{"enum":["yes","no"]}`: `"yes"`, `{"type":"integer"}`: `42`, `{"type":"boolean"}`: `false`, `{"type":"string"}`: `"x"`,
		`{"type":"array","items":{"type":"integer"}}`: `[1,2]`, `{"type":["object","null"],"properties":{"a":{"type":"null"}},"required":["a"]}`: `null`,
		`{"type":"number","minimum":0}`: `1.50`, `true`: `{"a":[1]}`, `{"type":"null"}`: `null`,
	} {
		for _, v := range projection.Vendors() {
			p := project(t, source, v)
			d, _ := projection.DialectOf(v)
			answer := roundTrip(t, p, value)
			require.Equal(t, d.ObjectRoot, strings.HasPrefix(answer, `{"value":`), "%s %s: %s", v, source, answer)
		}
	}
}

func TestWrap_LeavesTheSchemaAsWritten(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`{"enum":["yes"]}`: `{"enum":["yes"]}`,
		`{"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#n"},{"type":"null"}],"$anchor":"n"}}}`: `{"type":"array","items":{"$ref":"#/properties/value/$defs/a"},` +
			`"$defs":{"a":{"anyOf":[{"$ref":"#/properties/value"},{"$ref":"#n"},{"type":"null"}],"$anchor":"n"}}}`,
		`{"$id":"https://x.example/a","$ref":"#/$defs/b","$defs":{"b":{"type":"string"}}}`: `{"$id":"https://x.example/a","$ref":"#/$defs/b","$defs":{"b":{"type":"string"}}}`,
	} {
		p := projection.Wrap(json.RawMessage(source))
		require.Equal(t, `{"type":"object","properties":{"value":`+want+`},"required":["value"],"additionalProperties":false}`, string(p.Schema()))
		_, err := schema.Compile("wrapped", p.Schema())
		require.NoError(t, err)
		restored, err := p.Restore(json.RawMessage(`{"value": [1.50]}`))
		require.NoError(t, err)
		require.Equal(t, `[1.50]`, string(restored))
		lifted, err := p.Lift(json.RawMessage(`"yes"`))
		require.NoError(t, err)
		require.JSONEq(t, `{"value":"yes"}`, string(lifted))
	}
	require.Nil(t, projection.Wrap(json.RawMessage(`{"type":"object"}`)))
}

// A union without a tag: answers find their branch by the names of members, their types and enums.
func TestRestore_FindsTheBranchOfAnUntaggedUnion(t *testing.T) {
	t.Parallel()
	source := in(`{"anyOf":[
		{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"age":{"type":"integer"},"extra":{"type":"object"}}},
		{"type":"object","required":["company"],"properties":{"company":{"type":"string"},"extra":{"type":"object"}}},
		{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}},
		{"type":"object","required":["id"],"properties":{"id":{"enum":["x","y"]}}},
		{"type":"string"},{"type":"null"}]}`)
	for _, v := range projection.Vendors() {
		p := project(t, source, v)
		for _, value := range []string{
			`{"name":"a"}`, `{"name":"a","age":3,"extra":{"k":1}}`, `{"company":"c","extra":{}}`, `{"id":5}`, `{"id":"x"}`, `"s"`, `null`,
		} {
			roundTrip(t, p, `{"m":`+value+`}`)
		}
		// An answer without its optional members, from a server that does not enforce the schema.
		restored, err := p.Restore(json.RawMessage(`{"m":{"company":"c"}}`))
		require.NoError(t, err)
		require.JSONEq(t, `{"m":{"company":"c"}}`, string(restored))
	}
}

func TestRewrites_NameVendorPathAndRule(t *testing.T) {
	t.Parallel()
	source := `{"type":"object","required":["t"],"properties":{"t":{"type":"string","minLength":3},"o":{"oneOf":[{"type":"string"},{"type":"integer"}]},
		"m":{"type":"object","additionalProperties":{"type":"number"}},"x":{},"n":{"type":"string","nullable":true}}}`
	var got []string
	for _, r := range projection.Review([]byte(source), projection.Builtin()...) {
		require.False(t, r.Refused)
		for _, path := range r.Paths {
			got = append(got, fmt.Sprint(r.Rule, " ", path, " ", r.Vendors))
		}
		require.Contains(t, r.String(), "rewritten for openai, anthropic")
	}
	require.ElementsMatch(t, []string{
		"closed-object  [openai anthropic gemini]", "described /properties/t/minLength [openai anthropic]",
		"null-for-absent /properties/m [openai anthropic gemini]", "null-for-absent /properties/n [openai anthropic gemini]",
		"null-for-absent /properties/o [openai anthropic gemini]", "null-for-absent /properties/x [openai anthropic gemini]",
		"one-of-as-any-of /properties/o/oneOf [openai anthropic gemini]",
		"key-value-list /properties/m [openai anthropic gemini]", "json-text /properties/x [openai anthropic gemini]",
	}, got)
	refused := projection.Review([]byte(in(`{"not":{}}`)), projection.Anthropic)
	require.Equal(t, `refused for anthropic at "/properties/m/not": the keyword not has no words in a strict mode; leave it out, or list what is allowed`, refused[0].String())
}

// The page shows the table.
func TestDocs_ShowTheTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "structured-output.md"))
	require.NoError(t, err)
	for _, v := range projection.Vendors() {
		d, _ := projection.DialectOf(v)
		require.Contains(t, string(page), "`"+string(v)+"`")
		require.Contains(t, string(page), d.Source)
	}
}

// Anthropic limits unions and optional members. Optional members that may not be null stay optional.
func TestCompile_KeepsTheLimitOfUnions(t *testing.T) {
	t.Parallel()
	for n, refused := range map[int]string{1: "", 16: "", 17: "", 40: "", 41: projection.RuleOptional} {
		source := `{"type":"object","additionalProperties":false,"properties":{` + listed(n, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"integer"}`, i) }) + `}}`
		p, problems := projection.Compile(json.RawMessage(source), projection.Anthropic)
		if refused != "" {
			require.Len(t, problems, 1)
			require.Equal(t, refused, problems[0].Rule)
			continue
		}
		require.Empty(t, problems, "%d", n)
		require.Empty(t, projection.LintFor(projection.Anthropic, p.Schema()))
		require.Equal(t, min(n, 16), strings.Count(string(p.Schema()), `"null"`))
		said := 0
		for _, r := range p.Rewrites() {
			if r.Rule == projection.RewriteNull {
				said++
			}
		}
		require.Equal(t, min(n, 16), said, "the others are sent as they are")
		for _, value := range []string{`{}`, `{"p0":1}`, fmt.Sprintf(`{"p%d":2}`, n-1)} {
			answer := roundTrip(t, p, value)
			s, err := schema.Compile("sent", p.Schema())
			require.NoError(t, err)
			require.Empty(t, s.Validate([]byte(answer)), answer)
		}
	}
	// Unions of the schema itself leave less room.
	source := `{"type":"object","additionalProperties":false,"required":["u"],"properties":{"u":{"type":["string","integer"]},` +
		listed(30, func(i int) string {
			return fmt.Sprintf(`"p%d":{"type":"object","properties":{"q":{"type":"null"}}}`, i)
		}) + `}}`
	p := project(t, source, projection.Anthropic)
	require.Equal(t, 15, strings.Count(string(p.Schema()), `["object","null"]`))
	roundTrip(t, p, `{"u":1,"p0":{"q":null},"p29":{"q":null}}`)
}
