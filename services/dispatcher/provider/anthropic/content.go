package anthropic

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/anthropics/anthropic-sdk-go"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// conversation is a request's messages in the vendor's form: the system text separate, and user and
// assistant in turn.
type conversation struct {
	system   []anthropic.TextBlockParam
	messages []anthropic.MessageParam
}

// conversationOf converts the messages. Empty texts are dropped, because the vendor rejects them. A
// tool's message becomes the user's: the vendor requires the call's id with a tool result, and the
// port has none.
func conversationOf(req provider.Request) (conversation, error) {
	var c conversation
	c.addSystem(req.System)
	for i, m := range req.Messages {
		parts, err := m.Parts()
		if err != nil {
			return c, messageError(i, err)
		}
		if err := c.add(i, m.Role, parts); err != nil {
			return c, err
		}
	}
	return c, c.finish()
}

// messageError adds the message's index to an error.
func messageError(i int, err error) error {
	if e, ok := provider.As(err); ok {
		return invalid("messages[%d].%s", i, e.Message)
	}
	return err
}

// addSystem adds to the system text.
func (c *conversation) addSystem(text string) {
	if text != "" {
		c.system = append(c.system, anthropic.TextBlockParam{Text: text})
	}
}

func (c *conversation) add(i int, role string, parts []provider.Part) error {
	var blocks []anthropic.ContentBlockParamUnion
	for j, p := range parts {
		where := fmt.Sprintf("messages[%d].content[%d]", i, j)
		switch {
		case p.Kind == provider.PartText && role == "system":
			c.addSystem(p.Text)
		case p.Kind == provider.PartText && p.Text == "":
		case p.Kind == provider.PartText:
			blocks = append(blocks, anthropic.NewTextBlock(p.Text))
		case role == "system" || role == "assistant":
			return unsupported("%s: %s: this provider takes nothing but text of the %s", where, p.Kind, role)
		default:
			b, err := mediaBlock(where, p)
			if err != nil {
				return err
			}
			blocks = append(blocks, b)
		}
	}
	switch {
	case len(blocks) == 0:
	case role == "assistant":
		c.messages = append(c.messages, anthropic.NewAssistantMessage(blocks...))
	default:
		c.messages = append(c.messages, anthropic.NewUserMessage(blocks...))
	}
	return nil
}

// finish repairs or rejects what the vendor would reject.
func (c *conversation) finish() error {
	if len(c.messages) == 0 {
		// The vendor requires a user turn, and the system text is the only text.
		var blocks []anthropic.ContentBlockParamUnion
		for _, s := range c.system {
			blocks = append(blocks, anthropic.NewTextBlock(s.Text))
		}
		if len(blocks) == 0 {
			return invalid("messages: all of them are empty")
		}
		c.system, c.messages = nil, []anthropic.MessageParam{anthropic.NewUserMessage(blocks...)}
	}
	if c.messages[0].Role != anthropic.MessageParamRoleUser {
		return invalid("messages: the first one that says anything is the assistant's; this provider wants the user's first")
	}
	if c.endsWithAssistant() {
		last := c.messages[len(c.messages)-1]
		// The model continues this text, and the vendor rejects trailing white space in it.
		if text := last.Content[len(last.Content)-1].OfText; text != nil {
			text.Text = strings.TrimRight(text.Text, " \t\r\n")
			if text.Text == "" {
				return invalid("messages: the last one ends in nothing but white space; leave it out")
			}
		}
	}
	if n := len(c.system); n > 0 {
		// Everything up to here, including the tools, is the same in each call of a node. The
		// vendor caches it if it is long enough.
		c.system[n-1].CacheControl = anthropic.NewCacheControlEphemeralParam()
	}
	return nil
}

// endsWithAssistant reports whether the last message is the model's own, which it continues.
func (c *conversation) endsWithAssistant() bool {
	n := len(c.messages)
	return n > 0 && c.messages[n-1].Role == anthropic.MessageParamRoleAssistant
}

// imageTypes are the image types that the vendor supports.
var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

const pdf = "application/pdf"

// mediaBlock converts a part that is not text.
func mediaBlock(where string, p provider.Part) (anthropic.ContentBlockParamUnion, error) {
	var none anthropic.ContentBlockParamUnion
	switch {
	case p.Kind == provider.PartImage && p.URL != "":
		return anthropic.NewImageBlock(anthropic.URLImageSourceParam{URL: p.URL}), nil
	case p.Kind == provider.PartImage && slices.Contains(imageTypes, p.MIME):
		return anthropic.NewImageBlockBase64(p.MIME, base64.StdEncoding.EncodeToString(p.Data)), nil
	case p.Kind == provider.PartImage:
		return none, unsupported("%s: image of type %q; this provider takes %s", where, p.MIME, strings.Join(imageTypes, ", "))
	case p.Kind == provider.PartFile && p.URL != "" && (p.MIME == "" || p.MIME == pdf):
		return document(p, anthropic.NewDocumentBlock(anthropic.URLPDFSourceParam{URL: p.URL})), nil
	case p.Kind == provider.PartFile && p.URL == "" && p.MIME == pdf:
		return document(p, anthropic.NewDocumentBlock(anthropic.Base64PDFSourceParam{Data: base64.StdEncoding.EncodeToString(p.Data)})), nil
	case p.Kind == provider.PartFile && p.URL == "" && isText(p):
		return document(p, anthropic.NewDocumentBlock(anthropic.PlainTextSourceParam{Data: string(p.Data)})), nil
	case p.Kind == provider.PartFile:
		return none, unsupported("%s: file of type %q; this provider takes %s, and text as data", where, p.MIME, pdf)
	default:
		return none, unsupported("%s: %s: this provider takes text, images and files", where, p.Kind)
	}
}

// isText reports whether the vendor accepts a file as plain text.
func isText(p provider.Part) bool {
	return (strings.HasPrefix(p.MIME, "text/") || p.MIME == "application/json") && utf8.Valid(p.Data)
}

// document sets the name of a file.
func document(p provider.Part, b anthropic.ContentBlockParamUnion) anthropic.ContentBlockParamUnion {
	if p.Name != "" {
		b.OfDocument.Title = anthropic.String(p.Name)
	}
	return b
}

func invalid(format string, args ...any) *provider.Error {
	return &provider.Error{Code: provider.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
}

func unsupported(format string, args ...any) *provider.Error {
	return &provider.Error{Code: provider.CodeUnsupportedModality, Message: fmt.Sprintf(format, args...)}
}
