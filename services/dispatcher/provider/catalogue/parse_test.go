package catalogue_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

const small = `{"version":1,"asOf":"2026-01-31","models":[
	{"provider":"acme","model":"big","aliases":["large"],"snapshots":["big-2026-01-01"],"capabilities":["reasoning","structured-output"],
	 "contextTokens":100000,"outputTokens":5000,"structuredOutput":"tool","sampling":false,
	 "prices":{"input":1.25,"output":10,"cacheRead":0.125,"until":"2026-06-30","then":{"input":2.5,"output":20}},"retires":"2027-01-01","note":"n"},
	{"provider":"acme","model":"tiny"}],
	"rules":[{"match":"home*","capabilities":["x-host-acme-dance"],"lacks":["vision-input"]}]}`

func parsed(t *testing.T, doc string) *catalogue.Catalogue {
	t.Helper()
	c, err := catalogue.Parse([]byte(doc))
	require.NoError(t, err)
	return c
}

func TestParse_ReadsWhatADocumentSays(t *testing.T) {
	t.Parallel()
	c := parsed(t, small)
	require.Equal(t, "2026-01-31", c.AsOf())
	require.Len(t, c.Entries(), 2)
	for _, n := range []string{"big", "large", "big-2026-01-01"} {
		e, ok := c.Lookup("acme", n)
		require.True(t, ok, n)
		require.Equal(t, "acme/big", e.Name())
		require.Equal(t, []string{"structured-output", "reasoning"}, e.Capabilities)
		require.Equal(t, catalogue.StructuredTool, e.StructuredOutput)
		require.False(t, *e.Sampling)
		require.Equal(t, "0.125", e.Prices.CacheRead.String())
	}
	_, ok := c.Lookup("other", "big")
	require.False(t, ok)
	e, ok := c.Lookup("acme", "tiny")
	require.True(t, ok)
	require.Nil(t, e.Sampling)
	require.Nil(t, e.Prices)
	e, ok = c.Lookup("acme", "maker/HOME-7B")
	require.True(t, ok, "the document lists no providers, so rules speak for all")
	require.Equal(t, "home*", e.Rule)
}

// With more violations than are listed, contradictions are not checked.
func TestParse_DrawsNoConclusionsFromWhatIsNotTold(t *testing.T) {
	t.Parallel()
	_, err := catalogue.Parse([]byte(`{"version":1,"asOf":"2026-01-31","models":[` + strings.TrimSuffix(strings.Repeat(`{"provider":"acme"},`, 40), ",") + `]}`))
	var wrong *catalogue.ParseError
	require.ErrorAs(t, err, &wrong)
	require.Len(t, wrong.Problems, 32)
	require.NotContains(t, err.Error(), "goes by this name")
}

func TestParse_NamesEveryFaultWithItsPlace(t *testing.T) {
	t.Parallel()
	model := func(members string) string {
		return `{"version":1,"asOf":"2026-01-31","models":[{"provider":"acme","model":"big",` + members + `}]}`
	}
	for name, tc := range map[string]struct {
		doc  string
		want []catalogue.Problem
	}{
		"no JSON": {`{`, []catalogue.Problem{{"", "want"}}},
		"a member twice": {
			`{"version":1,"version":1,"asOf":"2026-01-31"}`,
			[]catalogue.Problem{{"/version", "member"}},
		},
		"no object":                {`[]`, []catalogue.Problem{{"", "object"}}},
		"another form":             {`{"version":2,"asOf":"2026-01-31"}`, []catalogue.Problem{{"/version", "1"}}},
		"no day":                   {`{"version":1}`, []catalogue.Problem{{"", "asOf"}}},
		"a day that is none":       {`{"version":1,"asOf":"2026-02-30"}`, []catalogue.Problem{{"/asOf", "date"}}},
		"an unknown member":        {model(`"price":1`), []catalogue.Problem{{"/models/0/price", "allowed: aliases"}}},
		"a member in another case": {model(`"Note":"x"`), []catalogue.Problem{{"/models/0/Note", "note"}}},
		"a rule's pattern": {
			`{"version":1,"asOf":"2026-01-31","models":[{"provider":"acme","model":"big","rule":"x*"}]}`,
			[]catalogue.Problem{{"/models/0/rule", "unknown member"}},
		},
		"an unknown capability": {
			model(`"capabilities":["structured-outputs"]`),
			[]catalogue.Problem{{"/models/0/capabilities/0", "structured-output"}},
		},
		"a capability twice": {
			model(`"capabilities":["reasoning","reasoning"]`),
			[]catalogue.Problem{{"/models/0/capabilities", ""}},
		},
		"a provider's id": {
			`{"version":1,"asOf":"2026-01-31","models":[{"provider":"ACME","model":"big"}]}`,
			[]catalogue.Problem{{"/models/0/provider", "match"}},
		},
		"an empty name": {
			`{"version":1,"asOf":"2026-01-31","models":[{"provider":"acme","model":""}]}`,
			[]catalogue.Problem{{"/models/0/model", ""}},
		},
		"null":             {model(`"prices":null`), []catalogue.Problem{{"/models/0/prices", "object"}}},
		"a negative price": {model(`"prices":{"input":-1}`), []catalogue.Problem{{"/models/0/prices/input", "0"}}},
		"a price too fine": {model(`"prices":{"input":0.0000001}`), []catalogue.Problem{{"/models/0/prices/input", "1e-06"}}},
		"several at once": {
			model(`"contextTokens":0,"sampling":"no","structuredOutput":"json","prices":{"output":"1"}`),
			[]catalogue.Problem{
				{"/models/0/contextTokens", "1"},
				{"/models/0/prices/output", "number"},
				{"/models/0/sampling", "boolean"},
				{"/models/0/structuredOutput", "format"},
			},
		},
		"a source that cannot be looked at": {
			`{"version":1,"asOf":"2026-01-31","providers":{"acme":{"name":"Acme","source":["http://acme.example"]}}}`,
			[]catalogue.Problem{{"/providers/acme/source/0", "https"}},
		},
		"then without until": {
			model(`"prices":{"input":1,"then":{"input":2}}`),
			[]catalogue.Problem{{"/models/0/prices", "until"}},
		},
		"a long context that is": {
			model(`"contextTokens":200000`),
			[]catalogue.Problem{{"/models/0/contextTokens", "long-context"}},
		},
		"a long context that isn": {
			model(`"contextTokens":199999,"capabilities":["long-context"]`),
			[]catalogue.Problem{{"/models/0/contextTokens", "200000"}},
		},
		"a way without capability": {
			model(`"structuredOutput":"format"`), []catalogue.Problem{{"/models/0/structuredOutput", "structured-output"}},
		},
		"a capability without a way": {
			model(`"structuredOutput":"none","capabilities":["structured-output"]`),
			[]catalogue.Problem{{"/models/0/structuredOutput", "structured-output"}},
		},
		"an answer longer than all": {
			model(`"contextTokens":100,"outputTokens":101`),
			[]catalogue.Problem{{"/models/0/outputTokens", "contextTokens"}},
		},
		"prices that run backwards": {
			model(`"prices":{"until":"2026-06-30","then":{"until":"2026-06-30"}}`),
			[]catalogue.Problem{{"/models/0/prices/then/until", "after 2026-06-30"}},
		},
		"a capability unsure of": {
			model(`"capabilities":["reasoning"],"unsure":["vision-input","reasoning"]`),
			[]catalogue.Problem{{"/models/0/unsure/1", "one of the two"}},
		},
		"a name that is an alias": {
			model(`"aliases":["big"]`),
			[]catalogue.Problem{{"/models/0/aliases/0", "a name is that of one model"}},
		},
		"a rule that lacks its own": {
			`{"version":1,"asOf":"2026-01-31","rules":[{"match":"a","capabilities":["reasoning"],"lacks":["reasoning"]}]}`,
			[]catalogue.Problem{{"/rules/0/lacks/0", "one of the two"}},
		},
		"a pattern in upper case": {
			`{"version":1,"asOf":"2026-01-31","rules":[{"match":"A[bc]"}]}`,
			[]catalogue.Problem{{"/rules/0/match", "match"}},
		},
		"a rule that never speaks": {
			`{"version":1,"asOf":"2026-01-31","rules":[{"match":"a*"},{"match":"a*","provider":"acme"},{"match":"a*"}]}`,
			[]catalogue.Problem{{"/rules/2/match", "rule 0"}},
		},
		"two models of one name": {
			`{"version":1,"asOf":"2026-01-31","models":[{"provider":"acme","model":"a"},{"provider":"b","model":"a"},{"provider":"acme","model":"c","snapshots":["a"]}]}`,
			[]catalogue.Problem{{"/models/2/snapshots/0", "models/0"}},
		},
		"contradictions in well-formed parts": {
			`{"version":1,"models":[{"provider":"acme","model":"a"},{"provider":"acme","model":"a"},{"provider":"acme","model":"a","note":7},{"provider":"acme"},{"provider":"acme"},
				{"provider":"acme","model":"b","contextTokens":5,"outputTokens":6}],"rules":[{"match":"y","provider":7},{"match":"y"},{"match":"y"}]}`,
			[]catalogue.Problem{
				{"", "asOf"},
				{"/models/2/note", "string"},
				{"/models/3", "model"},
				{"/models/4", "model"},
				{"/rules/0/provider", "string"},
				{"/models/1/model", "models/0"},
				{"/models/5/outputTokens", "contextTokens"},
				{"/rules/2/match", "rule 1"},
			},
		},
		"models in another case": {
			`{"version":1,"asOf":"2026-01-31","Models":[{"provider":"acme","model":"a"},{"provider":"acme","model":"a"}]}`,
			[]catalogue.Problem{{"/Models", "allowed"}},
		},
		"contradictions, all listed": {
			model(`"contextTokens":300000,"outputTokens":400000`),
			[]catalogue.Problem{{"/models/0/contextTokens", ""}, {"/models/0/outputTokens", ""}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := catalogue.Parse([]byte(tc.doc))
			require.Nil(t, c)
			var wrong *catalogue.ParseError
			require.ErrorAs(t, err, &wrong)
			require.Len(t, wrong.Problems, len(tc.want), err.Error())
			for i, p := range tc.want {
				require.Equal(t, p.Path, wrong.Problems[i].Path, err.Error())
				require.Contains(t, wrong.Problems[i].Message, p.Message)
				require.Contains(t, err.Error(), `at "`+p.Path+`": `)
			}
			require.Len(t, strings.Split(err.Error(), "\n"), len(tc.want))
		})
	}
}
