package compat_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
	"waybill.dev/waybill/test/double/openaicompat"
)

// received makes a call with one message and returns its content as the server got it.
func received(t *testing.T, dialect compat.Dialect, role, content string) (string, error) {
	t.Helper()
	r := dialectRig(t, dialect, nil)
	req := provider.Request{Model: openaicompat.DefaultModel, Messages: []provider.Message{
		{Role: "user", Content: json.RawMessage(`"first"`)}, {Role: role, Content: json.RawMessage(content)},
	}}
	if _, err := r.Call(t.Context(), req, nil); err != nil {
		return "", err
	}
	var body struct {
		Messages []struct{ Content json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(r.server.Requests()[0].Body, &body))
	return string(body.Messages[1].Content), nil
}

func TestCall_SaysContentInTheVendorsWords(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`"a<b"`:                       `"a<b"`,
		`[{"type":"text","text":""}]`: `[{"type":"text","text":""}]`,
		`[{"type":"image_url","image_url":{"url":"https://x.example/a.png","detail":"low"}}]`:                      `[{"type":"image_url","image_url":{"url":"https://x.example/a.png","detail":"low"}}]`,
		`[{"type":"image","mimeType":"image/webp","base64":"AQI="},{"type":"text","text":"what is it?","x":1}]`:    `[{"type":"image_url","image_url":{"url":"data:image/webp;base64,AQI="}},{"type":"text","text":"what is it?","x":1}]`,
		`[{"type":"image","mimeType":"image/png","url":"https://x.example/a"}]`:                                    `[{"type":"image_url","image_url":{"url":"https://x.example/a"}}]`,
		`[{"type":"file","mimeType":"application/pdf","base64":"AQI=","name":"a.pdf"}]`:                            `[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AQI="}}]`,
		`[{"type":"file","mimeType":"application/pdf","base64":"AQI="}]`:                                           `[{"type":"file","file":{"filename":"file","file_data":"data:application/pdf;base64,AQI="}}]`,
		`[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AQI=","more":true}}]`: `[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AQI=","more":true}}]`,
	} {
		for _, dialect := range []compat.Dialect{compat.DialectCompatible, compat.DialectOpenAI} {
			got, err := received(t, dialect, "user", content)
			require.NoError(t, err, content)
			require.JSONEq(t, want, got)
		}
	}
	for content, want := range map[string]string{
		`[{"type":"audio","mimeType":"audio/mpeg","base64":"AQI="}]`:   `[{"type":"input_audio","input_audio":{"data":"AQI=","format":"mp3"}}]`,
		`[{"type":"audio","mimeType":"audio/x-flac","base64":"AQI="}]`: `[{"type":"input_audio","input_audio":{"data":"AQI=","format":"flac"}}]`,
	} {
		got, err := received(t, compat.DialectCompatible, "user", content)
		require.NoError(t, err)
		require.JSONEq(t, want, got)
	}
}

// OpenAI's models that hear take sound.
func TestOpenAI_TakesSound(t *testing.T) {
	t.Parallel()
	r := openAIRig(t, nil)
	r.call(t, provider.Request{Model: speaking, Messages: []provider.Message{
		{Role: "user", Content: json.RawMessage(`[{"type":"audio","mimeType":"audio/x-wav","base64":"AQI="}]`)},
	}, Schema: json.RawMessage(schema), Via: provider.ViaTool}, openaicompat.Reply{Pieces: answer})
	require.Contains(t, string(r.server.Requests()[0].Body), `"format":"wav"`)
	require.NotContains(t, r.lastBody(t), "modalities", "an answer that has a schema is text")
}

// A part the vendor cannot take is refused before anything is asked, by message and part.
func TestCall_RefusesPartsTheVendorDoesNotTake(t *testing.T) {
	t.Parallel()
	const both = "both"
	for _, tc := range []struct {
		dialect             compat.Dialect
		role, content, want string
	}{
		{
			both, "user",
			`[{"type":"text","text":"a"},{"type":"audio","mimeType":"audio/wav","url":"https://x.example/a"}]`,
			"messages[1].content[1]: sound by URL",
		},
		{
			both, "user", `[{"type":"file","mimeType":"application/pdf","url":"https://x.example/a"}]`,
			"messages[1].content[0]: a file by URL",
		},
		{
			compat.DialectOpenAI, "user", `[{"type":"image","mimeType":"image/tiff","base64":"AQI="}]`,
			"image/tiff: OpenAI takes images as png, jpeg, webp or gif",
		},
		{
			compat.DialectOpenAI, "user",
			`[{"type":"image_url","image_url":{"url":"data:image/tiff;base64,AQI="}}]`, "image/tiff",
		},
		{
			compat.DialectOpenAI, "user", `[{"type":"audio","mimeType":"audio/ogg","base64":"AQI="}]`,
			"audio/ogg: OpenAI takes sound as wav or mp3",
		},
		{
			compat.DialectOpenAI, "assistant", `[{"type":"image","mimeType":"image/png","base64":"AQI="}]`,
			"OpenAI takes image parts from the user alone",
		},
	} {
		for _, dialect := range []compat.Dialect{compat.DialectCompatible, compat.DialectOpenAI} {
			if tc.dialect != both && tc.dialect != dialect {
				continue
			}
			_, err := received(t, dialect, tc.role, tc.content)
			e, ok := provider.As(err)
			require.True(t, ok, tc.content)
			require.Equal(t, provider.CodeUnsupportedModality, e.Code)
			require.Contains(t, e.Message, tc.want)
			require.NotContains(t, e.Message, "AQI=")
		}
	}
}

func TestCall_RefusesPartsThatAreWrong(t *testing.T) {
	t.Parallel()
	for _, dialect := range []compat.Dialect{compat.DialectCompatible, compat.DialectOpenAI} {
		_, err := received(t, dialect, "user", `[{"type":"image","mimeType":"image/png","base64":"*"}]`)
		e, ok := provider.As(err)
		require.True(t, ok)
		require.Equal(t, provider.CodeInvalidRequest, e.Code)
		require.Equal(t, "messages[1].content[0]: want the data as base64", e.Message)
	}
	_, err := received(t, compat.DialectCompatible, "user", `[{"type":"file","Type":"hologram","text":"x"}]`)
	require.ErrorContains(t, err, "messages[1].content[0]: want a MIME type", "a member in another case makes it no other part")
	_, err = received(t, compat.DialectOpenAI, "user", `[{"type":"hologram"}]`)
	require.ErrorContains(t, err, "messages[1].content[0]: type: want text, image_url")
	_, err = received(t, compat.DialectOpenAI, "tool", `"42"`)
	require.ErrorContains(t, err, "messages[1].role: OpenAI takes a tool's result only with the id")
}

// A compatible server may know types of parts that the port does not.
func TestCall_LeavesUnknownPartsToCompatibleServers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	req := ask()
	req.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	req.Messages[0].Content = json.RawMessage(`[{"type":"video_url","video_url":{"url":"https://x.example/a"}}]`)
	_, err := r.Call(t.Context(), req, nil)
	require.ErrorContains(t, err, "status 400", "this one does not")
	require.Contains(t, string(r.server.Requests()[0].Body), `[{"type":"video_url","video_url":{"url":"https://x.example/a"}}]`)
	require.Equal(t, req.Traceparent, r.server.Requests()[0].Header.Get("Traceparent"))
}
