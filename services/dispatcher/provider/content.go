package provider

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
)

// PartKind is the kind of a message part.
type PartKind string

// The kinds of parts.
const (
	PartText  PartKind = "text"
	PartImage PartKind = "image"
	PartAudio PartKind = "audio"
	PartFile  PartKind = "file"
)

// Part is one block of a message's content in a vendor-neutral form.
type Part struct {
	Kind PartKind
	// Text is the text of a text part.
	Text string
	// MIME is the type of other parts; it may be empty for a part by URL.
	MIME string
	// Data holds the bytes, or URL the address that the vendor fetches; the host never fetches it.
	Data []byte
	URL  string
	// Name is the name of a file; empty for none.
	Name string
}

// Parts reads a message's content: a JSON string, or blocks in the form of chat completions (text,
// image_url, input_audio, file) or of this host's media kinds ({type: image|audio|file, mimeType,
// base64 or url}). Errors are *Error of CodeInvalidRequest and name the block, not its content.
func (m Message) Parts() ([]Part, error) {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return []Part{{Kind: PartText, Text: text}}, nil
	}
	var blocks []json.RawMessage
	if err := json.Unmarshal(m.Content, &blocks); err != nil {
		return nil, invalid("content: want a JSON string or an array of blocks")
	}
	out := make([]Part, 0, len(blocks))
	for i, raw := range blocks {
		p, err := parsePart(raw)
		if err != nil {
			return nil, invalid("content[%d]: %s", i, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// block is a block of either form.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
	InputAudio struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	} `json:"input_audio"`
	File struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	} `json:"file"`
	MIME   string `json:"mimeType"`
	Base64 string `json:"base64"`
	URL    string `json:"url"`
	Name   string `json:"name"`
}

func parsePart(raw json.RawMessage) (Part, error) {
	var b block
	if err := strictjson.Read(raw, &b); err != nil {
		return Part{}, fmt.Errorf("want an object with a type, such as {\"type\":\"text\",\"text\":\"…\"}")
	}
	switch b.Type {
	case "text":
		return Part{Kind: PartText, Text: b.Text}, nil
	case "image_url":
		return urlPart(PartImage, "", b.ImageURL.URL)
	case "input_audio":
		return dataPart(Part{Kind: PartAudio, MIME: "audio/" + strings.ToLower(b.InputAudio.Format)}, b.InputAudio.Data)
	case "file":
		if b.File.Data != "" {
			p, err := urlPart(PartFile, "", b.File.Data)
			p.Name = b.File.Name
			return p, err
		}
		return mediaPart(PartFile, b)
	case "image":
		return mediaPart(PartImage, b)
	case "audio":
		return mediaPart(PartAudio, b)
	default:
		return Part{}, fmt.Errorf("type: want text, image_url, input_audio, file, image or audio")
	}
}

// mediaPart reads a block in the form of this host's media kinds.
func mediaPart(kind PartKind, b block) (Part, error) {
	if b.URL != "" {
		p, err := urlPart(kind, b.MIME, b.URL)
		p.Name = b.Name
		return p, err
	}
	return dataPart(Part{Kind: kind, MIME: b.MIME, Name: b.Name}, b.Base64)
}

// urlPart reads a part by its address; a data: address contains the part itself.
func urlPart(kind PartKind, mimeType, url string) (Part, error) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
			return Part{}, fmt.Errorf("url: want an http(s) or data: address")
		}
		return Part{Kind: kind, MIME: mimeType, URL: url}, nil
	}
	head, data, found := strings.Cut(rest, ",")
	head, isBase64 := strings.CutSuffix(head, ";base64")
	if !found || !isBase64 {
		return Part{}, fmt.Errorf("url: want data:<type>;base64,<data>")
	}
	return dataPart(Part{Kind: kind, MIME: head}, data)
}

// dataPart decodes the bytes of a part.
func dataPart(p Part, data string) (Part, error) {
	kind, _, err := mime.ParseMediaType(p.MIME)
	if err != nil || !strings.Contains(kind, "/") {
		return Part{}, fmt.Errorf("want a MIME type, such as image/png")
	}
	p.MIME = kind
	if p.Data, err = base64.StdEncoding.DecodeString(data); err != nil || len(p.Data) == 0 {
		return Part{}, fmt.Errorf("want the data as base64")
	}
	return p, nil
}
