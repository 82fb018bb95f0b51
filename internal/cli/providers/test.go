package providers

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
)

// answerTokens is the limit of each answer. Reasoning counts toward it.
const answerTokens = 2048

// answerSchema is in the dialect of every vendor.
const answerSchema = `{"type":"object","properties":{"ready":{"type":"boolean"}},"required":["ready"],"additionalProperties":false}`

// test calls a provider.
type test struct {
	provider provider.Provider
	model    string
	limit    time.Duration
	settings limit.Settings
	entry    catalogue.Entry
	listed   bool
	// hide removes keys from a server's message.
	hide func(string) string
}

// run makes the calls.
func (t *test) run(ctx context.Context) report {
	r := report{Provider: t.provider.ID(), Model: t.model, Limits: limitsOf(t.settings, t.entry)}
	text, stream, usage := t.askText(ctx)
	if r.Checks = append(r.Checks, text); !text.OK {
		return r // the other calls would fail, too
	}
	r.Checks = append(r.Checks, stream, usage)
	forms := []provider.SchemaVia{provider.ViaFormat}
	if f, ok := t.provider.(provider.SchemaForms); ok {
		forms = f.SchemaForms(t.model)
	}
	for _, form := range forms {
		c := t.askSchema(ctx, form)
		r.Checks = append(r.Checks, c)
		if c.OK && r.SchemaForm == "" {
			r.SchemaForm = form.Name()
		}
	}
	r.Works = r.SchemaForm != ""
	return r
}

// call makes one call, and returns the number of pieces of its answer.
func (t *test) call(ctx context.Context, prompt string, form provider.SchemaVia, sent json.RawMessage) (res provider.Result, pieces int, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.limit)
	defer cancel()
	content, err := json.Marshal(prompt)
	if err != nil {
		return provider.Result{}, 0, 0, err
	}
	began := time.Now()
	res, err = t.provider.Call(ctx, provider.Request{
		Provider:   t.provider.ID(),
		Model:      t.model,
		Messages:   []provider.Message{{Role: "user", Content: content}},
		Schema:     sent,
		Via:        form,
		SchemaName: "readiness",
		MaxTokens:  t.tokens(),
		Timeouts:   t.settings.Millis.Timeouts().Or(provider.DefaultTimeouts()),
	}, func(d provider.Delta) error {
		if d.Text != "" {
			pieces++
		}
		return nil
	})
	return res, pieces, time.Since(began), err
}

func (t *test) tokens() int {
	if n := t.entry.OutputTokens; t.listed && n > 0 {
		return min(n, answerTokens)
	}
	return answerTokens
}

// askText requests plain text. The further checks are about its pieces and its usage.
func (t *test) askText(ctx context.Context) (text, stream, usage check) {
	res, pieces, took, err := t.call(ctx, "Count from one to five in words, and write nothing else.", provider.ViaFormat, nil)
	text, stream, usage = check{Name: "text", Millis: took.Milliseconds()}, check{Name: "stream"}, check{Name: "usage"}
	switch {
	case err != nil:
		t.fail(&text, err)
		return text, stream, usage
	case strings.TrimSpace(res.Text) == "":
		text.Detail = fmt.Sprintf("the answer is empty; the server's reason is %q", res.RawStop)
		return text, stream, usage
	}
	text.OK, stream.OK = true, pieces > 1
	stream.Detail = fmt.Sprintf("%d pieces", pieces)
	if !stream.OK {
		stream.Detail = "in one piece: the server does not stream, or the answer was short"
	}
	usage.OK, usage.Detail = res.Usage.Known, "the server reports no token counts: 0 is recorded, and costs are unknown"
	if res.Usage.Known {
		usage.Detail = fmt.Sprintf("%d tokens in, %d out", res.Usage.InputTokens, res.Usage.OutputTokens)
		if n := res.Usage.ReasoningTokens; n != nil {
			usage.Detail += fmt.Sprintf(", %d of them to think", *n)
		}
	}
	return text, stream, usage
}

// askSchema requests a document of a schema in a form.
func (t *test) askSchema(ctx context.Context, form provider.SchemaVia) check {
	c := check{Name: "schema as " + form.Name()}
	prompt, sent := "Report that you are ready.", json.RawMessage(answerSchema)
	if form == provider.ViaObject || form == provider.ViaWords {
		prompt += " Answer with one JSON document and nothing else.\n\nJSON Schema of the document:\n" + answerSchema
		sent = nil
	}
	res, _, took, err := t.call(ctx, prompt, form, sent)
	c.Millis = took.Milliseconds()
	switch {
	case err != nil:
		t.fail(&c, err)
	case !satisfies(document(res.Text, form)):
		c.Detail = "accepted, but the answer does not satisfy the schema"
	default:
		c.OK = true
	}
	return c
}

// satisfies reports whether a document satisfies the schema.
func satisfies(document string) bool {
	s, err := schema.Compile("readiness", []byte(answerSchema))
	return err == nil && len(s.Validate([]byte(document))) == 0
}

// document returns the JSON document of an answer. Where nothing enforces JSON, models put words or a
// fence around it, which a host removes.
func document(text string, form provider.SchemaVia) string {
	first, last := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if form == provider.ViaWords && first >= 0 && last > first {
		return text[first : last+1]
	}
	return text
}

// fail describes a failed call.
func (t *test) fail(c *check, err error) {
	pe, ok := provider.As(err)
	if !ok {
		c.Detail = fmt.Sprintf("no answer within %s", t.limit)
		return
	}
	c.Code, c.Detail = pe.Code, pe.Message
	if pe.Status > 0 {
		c.Detail += fmt.Sprintf(" (status %d)", pe.Status)
	}
	if pe.Quote != "" {
		c.Detail += `; the server says: "` + strings.Join(strings.Fields(pe.Quote), " ") + `"`
	}
	c.Detail = t.hide(c.Detail)
}
