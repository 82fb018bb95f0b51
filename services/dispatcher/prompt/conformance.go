package prompt

// Conformance returns the templates of the protocol's test suite, which have no other use: two for
// the seam, the prompt of the fixture conformance-stream-text, and those of the fixtures
// conformance-prompt-* (OpenWOP envelope contract §23.6).
func Conformance() []*Template {
	return []*Template{
		newBuiltin("conformance.prompt.secret-redaction", User, "Say this to the service: {{secretRef}}",
			Variable{Name: "secretRef", Type: typeString, Required: true, Source: FromSecret}),
		newBuiltin("conformance.prompt.trust-marker", User, "Summarise this: {{userPayload}}",
			Variable{Name: "userPayload", Type: typeString, Required: true, Source: FromInput}),
		newBuiltin("conformance.stream-text-noop", User, "Say something."),
		newBuiltin("conformance.prompt.writer-system", System, "You write short texts."),
		newBuiltin("conformance.prompt.writer-user", User, "Write a sentence about tea."),
		newBuiltin("conformance.prompt.schema-hint", SchemaHint, "Answer with one JSON string."),
		newBuiltin("conformance.prompt.few-shot", FewShot, `About rain: "It falls."`),
		newBuiltin("conformance.prompt.few-shot-2", FewShot, `About bread: "It rises."`),
	}
}

func newBuiltin(id string, kind Kind, text string, variables ...Variable) *Template {
	t := &Template{ID: id, Version: "1.0.0", Kind: kind, Text: text, Variables: variables, Library: HostLibrary}
	if found := t.check(); found != nil {
		panic("prompt: " + found[0].Message)
	}
	return t
}
