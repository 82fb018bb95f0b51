// Package media finds the images, sounds and files among the inputs of a model node.
//
// An asset never becomes text of a prompt. A value that a prompt inserts has a mark such as
// "[image 1: a red lamp]" in place of each asset, and the asset itself is a part of the message. The
// run loop and the model calls use the same function, so a node requires exactly the capabilities of
// the parts that its model gets (OpenWOP envelope contract §16, §17).
package media

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// Kind is the kind of an asset. The values are those of message parts.
type Kind string

// The kinds.
const (
	Image Kind = "image"
	Audio Kind = "audio"
	File  Kind = "file"
)

// Item is an asset: the payload of a media envelope.
type Item struct {
	Kind Kind
	// MIME is its type; empty if unknown.
	MIME string
	// Base64 has the bytes, or URL the address; the other is empty.
	Base64, URL string
	// Bytes is the declared size.
	Bytes int64
	Alt   string
	Name  string
	// From is the input that contains it, as a JSON pointer of the node, and Untrusted that the input
	// is from an untrusted source.
	From      string
	Untrusted bool
}

// members are the members of a media payload (OpenWOP envelope contract §3.4).
var members = []string{"url", "base64", "bytes", "mimeType", "alt", "durationSeconds", "name"}

// prefix begins the names of the media kinds.
const prefix = "media."

// readItem reads a media payload: an object with these members only, a size, and a url or base64. kind
// is the kind of the envelope around it; empty for none.
func readItem(raw json.RawMessage, kind string) (Item, bool) {
	if !mayContain(raw) {
		return Item{}, false
	}
	closed := true
	sound := strictjson.Each(raw, func(name, _ []byte) {
		closed = closed && slices.Contains(members, string(name))
	})
	var p struct {
		URL      string `json:"url"`
		Base64   string `json:"base64"`
		Bytes    *int64 `json:"bytes"`
		MIMEType string `json:"mimeType"`
		Alt      string `json:"alt"`
		Name     string `json:"name"`
	}
	if !sound || !closed || strictjson.Read(raw, &p) != nil || p.Bytes == nil || p.URL == "" && p.Base64 == "" {
		return Item{}, false
	}
	if p.MIMEType == "" && p.Base64 == "" {
		p.MIMEType = typeOfData(p.URL)
	}
	i := Item{Kind: kindOf(kind, p.MIMEType), MIME: p.MIMEType, Base64: p.Base64, Bytes: *p.Bytes, Alt: p.Alt, Name: p.Name}
	if p.Base64 == "" {
		i.URL = p.URL
	}
	return i, true
}

// typeOfData returns the type in a data: URL; empty for other URLs.
func typeOfData(url string) string {
	scheme, rest, _ := strings.Cut(url, ":")
	if !strings.EqualFold(scheme, "data") {
		return ""
	}
	typ, _, _ := strings.Cut(rest, ",")
	typ, _, _ = strings.Cut(typ, ";")
	return typ
}

// kindOf returns the kind of an asset: that of its envelope, else that of its type.
func kindOf(envelope, mimeType string) Kind {
	kind, _, _ := strings.Cut(strings.ToLower(mimeType), "/")
	switch {
	case envelope == prefix+string(Image), envelope == "" && kind == string(Image):
		return Image
	case envelope == prefix+string(Audio), envelope == "" && kind == string(Audio):
		return Audio
	default:
		return File
	}
}

// mayContain reports whether a value may contain an asset. Most values do not, and are not parsed.
func mayContain(raw json.RawMessage) bool {
	has := func(text string) bool { return bytes.Contains(raw, []byte(text)) }
	return has(`"bytes"`) && (has(`"base64"`) || has(`"url"`)) || has(`\u`) // an escape can hide a name
}

// Describe returns a value with descriptions in place of its assets.
func Describe(raw json.RawMessage) json.RawMessage {
	return replace(raw, func(i Item) string { return i.mark("") })
}

// mark is the text in place of an asset. number distinguishes the assets of a prompt; empty if the
// asset is not a part of it.
func (i Item) mark(number string) string {
	out := "[" + string(i.Kind)
	if number != "" {
		out += " " + number
	}
	if i.Alt != "" {
		out += ": " + i.Alt
	}
	return out + "]"
}

// replace returns a value with texts in place of its assets. The rest keeps its bytes.
func replace(raw json.RawMessage, text func(Item) string) json.RawMessage {
	if !mayContain(raw) {
		return raw
	}
	return replaceIn(raw, "", text)
}

// replaceIn replaces the assets of a value. kind is that of the envelope whose payload it is.
func replaceIn(raw json.RawMessage, kind string, text func(Item) string) json.RawMessage {
	switch trimmed := bytes.TrimLeft(raw, " \t\r\n"); {
	case bytes.HasPrefix(trimmed, []byte("{")):
		if i, ok := readItem(raw, kind); ok {
			return wire.AppendString(nil, text(i))
		}
		return replaceMembers(raw, text)
	case bytes.HasPrefix(trimmed, []byte("[")):
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return raw
		}
		for n := range items {
			items[n] = replaceIn(items[n], "", text)
		}
		return strictjson.RenderPlain(items)
	default:
		return raw
	}
}

func replaceMembers(raw json.RawMessage, text func(Item) string) json.RawMessage {
	var (
		w     wire.ObjectWriter
		kind  string
		found bool
	)
	if typ, ok := strictjson.Member(raw, "type"); ok {
		kind, _ = strictjson.String(typ)
	}
	sound := strictjson.Each(raw, func(name, value []byte) {
		found = true
		of := ""
		if string(name) == "payload" && strings.HasPrefix(kind, prefix) {
			of = kind
		}
		w.Raw(string(name), replaceIn(value, of, text))
	})
	if !sound || !found {
		return raw
	}
	return w.Close()
}

// counter numbers the assets of a prompt, each kind from 1.
type counter map[Kind]int

func (c counter) next(k Kind) string {
	c[k]++
	return strconv.Itoa(c[k])
}
