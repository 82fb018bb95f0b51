package provider_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
)

func TestParts_ReadsBothDialects(t *testing.T) {
	t.Parallel()
	for content, want := range map[string][]provider.Part{
		`"hi"`: {{Kind: provider.PartText, Text: "hi"}},
		`[]`:   {},
		`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`: {
			{Kind: provider.PartText, Text: "a"},
			{Kind: provider.PartText, Text: "b"},
		},
		`[{"type":"image_url","image_url":{"url":"https://x.example/a.png","detail":"low"}}]`: {{
			Kind: provider.PartImage,
			URL:  "https://x.example/a.png",
		}},
		`[{"type":"image_url","image_url":{"url":"data:image/png;base64,AQI="}}]`: {{
			Kind: provider.PartImage,
			MIME: "image/png",
			Data: []byte{1, 2},
		}},
		`[{"type":"input_audio","input_audio":{"data":"AQI=","format":"wav"}}]`: {{
			Kind: provider.PartAudio,
			MIME: "audio/wav",
			Data: []byte{1, 2},
		}},
		`[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AQI="}}]`: {
			{Kind: provider.PartFile, MIME: "application/pdf", Data: []byte{1, 2}, Name: "a.pdf"},
		},
		`[{"type":"image","mimeType":"image/webp","base64":"AQI="}]`: {{
			Kind: provider.PartImage,
			MIME: "image/webp",
			Data: []byte{1, 2},
		}},
		`[{"type":"audio","mimeType":"audio/mpeg","url":"https://x.example/a"}]`: {{
			Kind: provider.PartAudio,
			MIME: "audio/mpeg",
			URL:  "https://x.example/a",
		}},
		`[{"type":"file","mimeType":"text/csv; charset=utf-8","base64":"AQI=","name":"a.csv"}]`: {{
			Kind: provider.PartFile,
			MIME: "text/csv",
			Data: []byte{1, 2},
			Name: "a.csv",
		}},
	} {
		got, err := provider.Message{Content: json.RawMessage(content)}.Parts()
		require.NoError(t, err, content)
		require.Equal(t, want, got, content)
	}
}

func TestParts_NamesTheBlockThatIsWrong(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`7`: "content: want a JSON string or an array of blocks",
		`[{"type":"text","text":"a"},{"type":"hologram"}]`: "content[1]: type: want text, image_url",
		`["secret"]`: "content[0]: want an object with a type",
		`[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]`:          "content[0]: url: want an http(s) or data: address",
		`[{"type":"image_url","image_url":{"url":"data:image/png,secret"}}]`:       "content[0]: url: want data:<type>;base64,<data>",
		`[{"type":"image","mimeType":"secret","base64":"AQI="}]`:                   "content[0]: want a MIME type",
		`[{"type":"input_audio","input_audio":{"data":"secret!","format":"wav"}}]`: "content[0]: want the data as base64",
		`[{"type":"audio","mimeType":"audio/wav"}]`:                                "content[0]: want the data as base64",
	} {
		_, err := provider.Message{Content: json.RawMessage(content)}.Parts()
		require.ErrorContains(t, err, want)
		e, ok := provider.As(err)
		require.True(t, ok)
		require.Equal(t, provider.CodeInvalidRequest, e.Code)
		require.NotContains(t, err.Error(), "secret")
	}
}

func FuzzParts(f *testing.F) {
	for _, seed := range []string{
		`"a"`, `[]`, `[{"type":"image_url","image_url":{"url":"data:image/png;base64,AQI="}}]`,
		`[{"type":"file","file":{}}]`, `{`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		parts, err := provider.Message{Content: content}.Parts()
		if err != nil {
			return
		}
		for _, p := range parts {
			require.False(t, p.Kind != provider.PartText && len(p.Data) == 0 && p.URL == "", "a part without anything in it")
		}
	})
}
