package sample_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
	"waybill.dev/waybill/services/dispatcher/provider/sample"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const refundMail = `Hello,
I was charged twice for invoice INV-20417. Please refund my invoice as soon as possible.
You can reach me at jo@example.org. See https://example.org/receipts/1 for the receipt of 42.50 EUR.`

// ask is a request about the mail for an answer that satisfies the schema.
func ask(text, schema string) provider.Request {
	r := providertest.Ask(sample.Model, text)
	if schema != "" {
		r.Schema = json.RawMessage(schema)
	}
	return r
}

func say(t *testing.T, r provider.Request) provider.Result {
	t.Helper()
	res, _ := providertest.Answer(t, sample.New(0), r)
	return res
}

func failure(t *testing.T, r provider.Request) *provider.Error {
	t.Helper()
	_, err := sample.New(0).Call(t.Context(), r, nil)
	e, ok := provider.As(err)
	require.True(t, ok, "got %v", err)
	return e
}

func TestProvider_PassesTheSuite(t *testing.T) { //nolint:paralleltest // the suite counts goroutines
	providertest.Run(t, func(*testing.T) provider.Provider { return sample.New(0) }, providertest.Options{
		Request: ask(refundMail, `{"type":"object","properties":{"summary":{"type":"string"}},"required":["summary"]}`),
		Stalls:  func(*testing.T) provider.Provider { return sample.New(100 * time.Millisecond) },
	})
}

func TestCall_KnowsOneModel(t *testing.T) {
	t.Parallel()
	r := ask("hello", "")
	r.Model = "gpt-x"
	require.Equal(t, provider.CodeModelNotSupported, failure(t, r).Code)
}

func TestCall_WithoutSchemaQuotesTheInputAndSaysWhatItIs(t *testing.T) {
	t.Parallel()
	res := say(t, ask("Where is my parcel? It is late.", ""))
	require.Contains(t, res.Text, "sample")
	require.Contains(t, res.Text, "not a model")
	require.Contains(t, res.Text, "Where is my parcel")
	require.Equal(t, provider.StopClean, res.Stop)
	require.Equal(t, sample.Model, res.Model)
}

func TestCall_IsDeterministic(t *testing.T) {
	t.Parallel()
	const schema = `{"enum":["red","green","blue","black","white"]}`
	first := say(t, ask("x", schema))
	for range 5 {
		require.Equal(t, first, say(t, ask("x", schema)))
	}
	// What routes the call, and what names it, is no part of the question.
	routed := ask("x", schema)
	routed.NodeID, routed.InvocationID = "n", "i"
	require.Equal(t, first, say(t, routed))
}

func TestCall_ChoosesTheEnumValueTheInputSpeaksOf(t *testing.T) {
	t.Parallel()
	const teams = `{"enum":["sales","billing","technical","other"],"description":"billing: charges, invoices, refunds. technical: errors, crashes, servers that fail. sales: quotes."}`
	for _, tc := range []struct{ input, schema, want string }{
		{"refund my invoice", teams, "billing"},
		{"I was charged twice for my subscription", teams, "billing"},
		{"The app crashes with an error at login", teams, "technical"},
		{"Can I get a quote for the premium plan?", teams, "sales"},
		{"Lorem ipsum dolor sit amet", teams, "other"},
		{"Answer sales, billing, technical or other. The server fails.", teams, "technical"},
		{"this is of high importance", `{"enum":["low","normal","high"]}`, "high"},
		{
			"the dragon sleeps",
			`{"enum":["x1","x2"],"description":"x1: castles and knights. x2: dragons and other beasts"}`,
			"x2",
		},
		{"please do it by email", `{"enum":["viaPhone","via_email"]}`, "via_email"},
		{"two", `{"type":["integer","null"],"enum":["two",null,2]}`, "2"},
		{
			"the dragon eats a ticket",
			`{"enum":["knight","dragon"],"description":"knight: a ticket. dragon: a ticket."}`,
			"dragon",
		},
	} {
		got := strings.Trim(say(t, ask(tc.input, tc.schema)).Text, `"`)
		require.Equal(t, tc.want, got, "%s", tc.input)
	}
}

func TestCall_ChoosesTheBranchTheInputSpeaksOf(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","required":["action"],"properties":{"action":{"anyOf":[
		{"type":"object","title":"Escalate","description":"hand the ticket to a person","properties":{"kind":{"type":"string","enum":["escalate"]},"team":{"type":"string"}},"required":["kind","team"]},
		{"type":"object","properties":{"kind":{"type":"string","enum":["refund"]},"amount":{"type":"number","minimum":0}},"required":["kind","amount"]},
		{"type":"null"}]}}}`
	for input, want := range map[string]string{
		"give me a refund of 12.50 please": `"kind":"refund","amount":12.5`,
		"I want to talk to a person":       `"kind":"escalate"`,
		"escalate this to your manager":    `"kind":"escalate"`,
	} {
		require.Contains(t, say(t, ask(input, schema)).Text, want, input)
	}
}

func TestCall_PrefersAValueToNull(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"type":["string","null"]}`, `{"type":["null","string"]}`,
		`{"anyOf":[{"type":"null"},{"type":"string"}]}`, `{"enum":[null,"a"]}`,
	} {
		require.NotEqual(t, "null", say(t, ask("hello there", schema)).Text, schema)
	}
	require.Equal(t, "null", say(t, ask("hello", `{"type":"null"}`)).Text)
}

func TestCall_FillsMembersFromTheInputInTheRequiredOrder(t *testing.T) {
	t.Parallel()
	res := say(t, ask(refundMail, `{"type":"object","required":["reasoning","subject","email","link","invoiceNumber","amount","urgent","language"],
		"properties":{
			"urgent":{"type":"boolean","description":"true if an answer is wanted soon, immediately, possible today"},"language":{"type":"string"},
			"reasoning":{"type":"string"},"subject":{"type":"string","maxLength":40},
			"email":{"type":"string","format":"email"},"link":{"type":"string","format":"uri"},
			"invoiceNumber":{"type":"string"},"amount":{"type":"number","maximum":100,"multipleOf":0.01}}}`))
	var got struct {
		Reasoning, Subject, Email, Link, InvoiceNumber, Language string
		Amount                                                   float64
		Urgent                                                   bool
	}
	require.NoError(t, json.Unmarshal([]byte(res.Text), &got))
	require.Contains(t, got.Reasoning, "charged twice")
	require.InDelta(t, 1, got.Amount, 0.001, "the first number of the input that fits")
	require.Equal(t, "jo@example.org", got.Email)
	require.Equal(t, "https://example.org/receipts/1", got.Link)
	require.Equal(t, "INV-20417", got.InvoiceNumber)
	require.Equal(t, "en", got.Language)
	require.True(t, got.Urgent)
	require.LessOrEqual(t, len(got.Subject), 40)
	require.Less(t, strings.Index(res.Text, `"reasoning"`), strings.Index(res.Text, `"subject"`))
	require.Less(t, strings.Index(res.Text, `"invoiceNumber"`), strings.Index(res.Text, `"amount"`))
}

// OpenWOP envelope contract §12: what is fenced in is what the prompt is about.
func TestCall_AnswersAboutTheFencedContent(t *testing.T) {
	t.Parallel()
	const prompt = "Decide between billing and technical. Invoices are billing.\n<UNTRUSTED>A technical error.</UNTRUSTED>"
	require.Equal(t, `"technical"`, say(t, ask(prompt, `{"enum":["billing","technical"]}`)).Text)
}

func TestCall_ReadsBlocksAndFallsBackToTheSystemText(t *testing.T) {
	t.Parallel()
	blocks := ask("", `{"enum":["technical","billing"]}`)
	blocks.Messages[0].Content = json.RawMessage(`[{"type":"text","text":"my bill please"}]`)
	require.Equal(t, `"billing"`, say(t, blocks).Text)

	system := provider.Request{Model: sample.Model, System: "our billing", Schema: blocks.Schema}
	require.Equal(t, `"billing"`, say(t, system).Text)
}

func TestCall_StopsAtTheBudget(t *testing.T) {
	t.Parallel()
	r := ask(refundMail, "")
	whole := say(t, r)
	r.MaxTokens = 3
	cut := say(t, r)
	require.Equal(t, provider.StopTruncated, cut.Stop)
	require.Equal(t, "length", cut.RawStop)
	require.Equal(t, 3, cut.Usage.OutputTokens)
	require.True(t, strings.HasPrefix(whole.Text, cut.Text))
	require.Less(t, len(cut.Text), len(whole.Text))

	r.MaxTokens = whole.Usage.OutputTokens
	require.Equal(t, provider.StopClean, say(t, r).Stop, "a budget that is just enough truncates nothing")
}

func TestCall_StopsAtAStopSequence(t *testing.T) {
	t.Parallel()
	r := ask("hello", "")
	r.Stop = []string{"", "never said", " not a"}
	res := say(t, r)
	require.Equal(t, provider.StopSequence, res.Stop)
	require.NotContains(t, res.Text, " not a")
}

func TestCall_CountsItsTokens(t *testing.T) {
	t.Parallel()
	small, large := say(t, ask("hello", "")), say(t, ask(strings.Repeat("hello ", 50), ""))
	require.Positive(t, small.Usage.InputTokens)
	require.GreaterOrEqual(t, large.Usage.InputTokens, small.Usage.InputTokens+49)
	for _, res := range []provider.Result{small, large} {
		require.True(t, res.Usage.Known)
		require.Equal(t, res.Usage.InputTokens+res.Usage.OutputTokens, res.Usage.TotalTokens)
	}
}

func TestNew_PacesThePieces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var n int
		_, err := sample.New(time.Second).Call(t.Context(), ask("hello", ""), func(provider.Delta) error {
			n++
			require.Equal(t, time.Duration(n)*time.Second, time.Since(start))
			return nil
		})
		require.NoError(t, err)

		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err = sample.New(time.Second).Call(ctx, ask("hello", ""), nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestCall_RefusesASchemaItCannotSatisfy(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"items":`, 600) + `{}` + strings.Repeat(`}`, 600)
	for name, schema := range map[string]string{
		"false":                     `false`,
		"a reference to elsewhere":  `{"$ref":"https://example.com/other.json"}`,
		"a reference to nowhere":    `{"$ref":"#/$defs/none"}`,
		"a reference to itself":     `{"$ref":"#"}`,
		"a circle of references":    `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"a union of itself":         `{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}`,
		"a tree without leaves":     `{"type":"object","required":["next"],"properties":{"next":{"$ref":"#"}}}`,
		"types that exclude":        `{"allOf":[{"type":"string"},{"type":"integer"}]}`,
		"enums that exclude":        `{"allOf":[{"enum":["a"]},{"enum":["b"]}]}`,
		"an enum of another type":   `{"type":"string","enum":[1,2]}`,
		"no number between":         `{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2}`,
		"too many items":            `{"type":"array","minItems":100000000}`,
		"too few different items":   `{"type":"array","minItems":3,"uniqueItems":true,"items":{"type":"boolean"}}`,
		"nested beyond reading":     deep,
		"branches that all exclude": `{"type":"string","anyOf":[{"type":"integer"},{"type":"null"}]}`,
	} {
		e := failure(t, ask("hello", schema))
		require.Equal(t, provider.CodeSchemaInvalid, e.Code, name)
		require.False(t, e.Retryable, name)
	}
}

func TestCall_RefusesASchemaThatAsksForTooMuchText(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"type":"string","minLength":99999999999}`,
		`{"type":"array","minItems":2000,"items":{"type":"string","minLength":8000000}}`,
	} {
		require.Equal(t, provider.CodeContentTooLong, failure(t, ask("hello", schema)).Code, schema)
	}
}

// The answer is computed, not searched for: no schema keeps the host busy.
func TestCall_IsQuickWhateverTheSchema(t *testing.T) {
	t.Parallel()
	var labels, branches []string
	for i := range 1500 {
		labels = append(labels, fmt.Sprintf(`"label %d"`, i))
		branches = append(branches, fmt.Sprintf(`{"const":"branch %d"}`, i))
	}
	mail := strings.Repeat(refundMail, 2000)
	for name, schema := range map[string]string{
		"labels":     `{"type":"array","minItems":1500,"uniqueItems":true,"items":{"enum":[` + strings.Join(labels, ",") + `]}}`,
		"branches":   `{"type":"array","minItems":5000,"items":{"anyOf":[` + strings.Join(branches, ",") + `]}}`,
		"patterns":   `{"type":"array","minItems":50000,"items":{"type":"string","pattern":"^((a{1,30}b?){1,30}c)*never$","maxLength":3}}`,
		"members":    `{"type":"object","minProperties":1000000}`,
		"bushy tree": `{"type":"array","minItems":10,"items":{"$ref":"#"}}`,
		"emails":     `{"type":"array","minItems":20000,"items":{"type":"string","format":"email"}}`,
		"merges":     `{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"allOf":[{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"}]},"c":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}},"$ref":"#/$defs/a"}`,
	} {
		start := time.Now()
		if _, err := sample.New(0).Call(t.Context(), ask(mail, schema), nil); err != nil {
			require.ErrorAs(t, err, new(*provider.Error), name)
		}
		require.Less(t, time.Since(start), 20*time.Second, name)
	}
}

func TestCall_FindsFormatsAndPatternsInTheInput(t *testing.T) {
	t.Parallel()
	const mail = "Mail jo.doe+x@mail.example.org by 2026-02-03, see http://a.example/b?c=d and 123e4567-e89b-12d3-a456-426614174000 for AB-1234."
	for schema, want := range map[string]string{
		`"format":"email"`: "jo.doe+x@mail.example.org", `"format":"date"`: "2026-02-03", `"format":"uri"`: "http://a.example/b?c=d",
		`"format":"uuid"`: "123e4567-e89b-12d3-a456-426614174000", `"format":"date-time"`: "2026-01-01T00:00:00Z", `"format":"ipv4"`: "192.0.2.1",
		`"pattern":"^[A-Z]{2}-\\d{4}$"`: "AB-1234", `"pattern":"^x{3}$"`: "xxx", `"pattern":"^(?:yes|no)$"`: "yes", `"pattern":"^(([a-z]+-)*[0-9]+_)*end$"`: "end",
	} {
		require.Equal(t, strconv.Quote(want), say(t, ask(mail, `{"type":"string",`+schema+`}`)).Text, schema)
	}
}
