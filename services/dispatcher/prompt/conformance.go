package prompt

// Conformance returns the templates of the protocol's test suite, which have no other use: two for
// the seam, and the prompt of the fixture conformance-stream-text (OpenWOP envelope contract
// §23.6).
func Conformance() []*Template {
	return []*Template{
		newBuiltin("conformance.prompt.secret-redaction", "Say this to the service: {{secretRef}}",
			Variable{Name: "secretRef", Type: typeString, Required: true, Source: FromSecret}),
		newBuiltin("conformance.prompt.trust-marker", "Summarise this: {{userPayload}}",
			Variable{Name: "userPayload", Type: typeString, Required: true, Source: FromInput}),
		newBuiltin("conformance.stream-text-noop", "Say something."),
	}
}

func newBuiltin(id, text string, variables ...Variable) *Template {
	t := &Template{ID: id, Version: "1.0.0", Kind: User, Text: text, Variables: variables, Library: HostLibrary}
	if found := t.check(); found != nil {
		panic("prompt: " + found[0].Message)
	}
	return t
}
