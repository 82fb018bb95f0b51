package openapi

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	"waybill.dev/waybill/services/gateway/rest"
)

// textsJSON has the comments of the proto files, by full names. `make gen` writes it.
//
//go:embed texts.json
var textsJSON []byte

var readTexts = sync.OnceValues(func() (texts map[string]string, err error) {
	err = json.Unmarshal(textsJSON, &texts)
	return texts, err
})

// scopeSentence ends the comment of a method; the description has the scopes as data.
var scopeSentence = regexp.MustCompile(` (Scopes? [a-z:]+( and [a-z:]+)?|No scope)\.$`)

// methodText returns the comment of a method without its name.
func (b *builder) methodText(full string) string {
	return scopeSentence.ReplaceAllString(b.text(rest.MethodOf(full)), "")
}

// messageText returns the comment of a message without its name.
func (b *builder) messageText(d protoreflect.MessageDescriptor) string {
	if d.ParentFile().Package() == "google.protobuf" {
		return ""
	}
	text := b.text(d)
	for _, verb := range []string{"Is ", "Holds ", "Has ", "Names "} {
		if rest, ok := strings.CutPrefix(text, verb); ok {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return text
}

// text returns a comment, which begins with the name that it describes, without that name.
func (b *builder) text(d protoreflect.Descriptor) string {
	text, ok := strings.CutPrefix(b.texts[string(d.FullName())], string(d.Name())+" ")
	if !ok {
		b.fail("%s has no comment that begins with its name", d.FullName())
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
