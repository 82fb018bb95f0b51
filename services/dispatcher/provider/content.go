package provider

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
)

// PartKind is what a part of a message holds.
type PartKind string

// The kinds of parts.
const (
	PartText  PartKind = "text"
	PartImage PartKind = "image"
	PartAudio PartKind = "audio"
	PartFile  PartKind = "file"
)

// Part is one block of a message's content, in nobody's dialect.
type Part struct {
	Kind PartKind
	// Text is that of a text part.
	Text string
	// MIME is the type of any other part; of one by URL it may be empty.
	MIME string
	// Data are its bytes, or URL is where the vendor fetches them; the host never does.
	Data []byte
	URL  string
	// Name is a file's, empty for none.
	Name string
}

// Parts reads a message's content: a JSON string, or blocks as chat completions
// have them (text, image_url, input_audio, file), or as this host's media kinds do
// ({type: image|audio|file, mimeType, base64 or url}). Errors are *Error of
// CodeInvalidRequest and name the block, not what is in it.
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

// block is any block of the two dialects.
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

// mediaPart is a block as this host's media kinds have it.
func mediaPart(kind PartKind, b block) (Part, error) {
	if b.URL != "" {
		p, err := urlPart(kind, b.MIME, b.URL)
		p.Name = b.Name
		return p, err
	}
	return dataPart(Part{Kind: kind, MIME: b.MIME, Name: b.Name}, b.Base64)
}

// urlPart is a part by its address; a data: address holds the part itself.
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

// dataPart adds the bytes to a part.
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
