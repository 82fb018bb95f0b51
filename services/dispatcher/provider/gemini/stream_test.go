package gemini_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/gemini"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
	double "waybill.dev/waybill/test/double/gemini"
)

// long is a stream with all that a stream has.
const long = ": hello\r\n\r\n" +
	`data: {"candidates":[{"content":{"parts":[{"text":"Let me see","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":8,"totalTokenCount":31,"promptTokensDetails":[{"modality":"TEXT","tokenCount":8}],"thoughtsTokenCount":23},"modelVersion":"gemini-2.5-double","responseId":"r"}` + "\r\n\r\n" +
	`data: {"candidates":[{"content":{"parts":[{"text":"{\"z\":1,"}],"role":"model"},"index":0,"safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT","probability":"NEGLIGIBLE"}]}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":4,"totalTokenCount":35,"thoughtsTokenCount":23},"modelVersion":"gemini-2.5-double","responseId":"r"}` + "\r\n\r\n" +
	`data: {"candidates":[{"content":{"parts":[{"text":"\"a\":\"é\"}"}],"role":"model"},"citationMetadata":{"citationSources":[{"startIndex":1,"endIndex":2,"uri":"https://x.example"}]},"index":0}],"modelVersion":"gemini-2.5-double","responseId":"r"}` + "\r\n\r\n" +
	`data: {"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"c2lnbmVk"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":9,"totalTokenCount":40,"thoughtsTokenCount":23},"modelVersion":"gemini-2.5-double","responseId":"r"}` + "\r\n\r\n"

const longText = `{"z":1,"a":"é"}`

// The stream of a forced tool.
const longTool = `data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"answer","args":{"z":1,"a":"é"}},"thoughtSignature":"c2lnbmVk"}],"role":"model"},"finishReason":"STOP","index":0,"finishMessage":"Model generated function call(s)."}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":9,"totalTokenCount":17},"modelVersion":"gemini-2.5-double","responseId":"r"}` + "\r\n\r\n"

func TestCall_ReadsTheVendorsStream(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	req := askVia(provider.ViaFormat)
	req.Thoughts = true
	res, pieces := r.call(t, req, double.Reply{ContentType: "text/event-stream", Raw: long})
	require.Equal(t, longText, res.Text)
	require.Equal(t, "Let me see", thoughtsOf(pieces))
	require.Equal(t, provider.Usage{
		InputTokens: 8, OutputTokens: 32, TotalTokens: 40, ReasoningTokens: new(23), Known: true,
	}, res.Usage)
	_, pieces = r.call(t, askVia(provider.ViaFormat), double.Reply{
		ContentType: "text/event-stream",
		Raw:         strings.ReplaceAll(long, "\r\n", "\n"),
	})
	require.Empty(t, thoughtsOf(pieces), "not requested")
}

// An answer that is cut anywhere is an error or the whole answer, whether the
// connection breaks or the body ends as if in good order.
func TestCall_TakesNoPartOfAnAnswerForTheWhole(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	for via, stream := range map[provider.SchemaVia]string{provider.ViaFormat: long, provider.ViaTool: longTool} {
		r := newRig(t, nil)
		for _, clean := range []bool{false, true} {
			wholes := 0
			for at := 1; at <= len(stream); at++ {
				r.server.Enqueue(double.Reply{
					ContentType: "text/event-stream",
					Raw:         stream,
					Cut:         &double.Cut{At: at, Clean: clean},
				})
				res, err := r.Call(t.Context(), askVia(via), nil)
				if err != nil {
					e, ok := provider.As(err)
					require.True(t, ok, "at %d: %v", at, err)
					require.Equal(t, provider.CodeUnavailable, e.Code, "at %d", at)
					require.True(t, e.Retryable, "at %d", at)
					continue
				}
				wholes++
				require.Equal(t, longText, res.Text, "at %d", at)
				require.Equal(t, provider.StopClean, res.Stop, "at %d", at)
				require.Positive(t, res.Usage.OutputTokens, "at %d", at)
			}
			// Whole are the streams that lack an end of a line at most.
			require.LessOrEqual(t, wholes, len("\r\n\r\n")+1)
			require.Equal(t, clean, wholes > 0)
		}
	}
}

// The same, through the server's own events.
func TestCall_TakesNoPartOfAServersAnswerForTheWhole(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	r := newRig(t, nil)
	for at := 1; at < 700; at++ {
		reply := double.Reply{
			Pieces: []string{`{"z":1,`, `"a":"é"}`},
			Noise:  ": ping\r\n\r\n",
			Cut:    &double.Cut{At: at, Clean: at%2 == 0},
		}
		r.server.Enqueue(reply)
		res, err := r.Call(t.Context(), askVia(provider.ViaFormat), nil)
		if err == nil {
			require.Equal(t, longText, res.Text, "at %d", at)
			continue
		}
		_, ok := provider.As(err)
		require.True(t, ok, "at %d: %v", at, err)
	}
}

func TestCall_CutsNothingOffAnAnswerAtItsBound(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	req := ask()
	req.MaxTokens = 3
	res, _ := r.call(t, req, double.Reply{Pieces: []string{"0123", "456789abcdef"}})
	require.Equal(t, "0123456789ab", res.Text, "the server's tokens have four signs")
	require.Equal(t, provider.StopTruncated, res.Stop)
	require.Equal(t, 3, res.Usage.OutputTokens)
}

func TestCall_KeepsArgumentsAsTheModelWroteThem(t *testing.T) {
	t.Parallel()
	for _, args := range []string{document, `{}`, `{"b":1,"a":2,"b":3}`} {
		res, _ := newRig(t, nil).call(t, askVia(provider.ViaTool), double.Reply{Calls: []double.Call{{Name: "answer", Args: args}}})
		require.Equal(t, args, res.Text)
	}
}

func TestCall_ReadsWhatIsSaidBesideTheTool(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	res, pieces := r.call(t, askVia(provider.ViaTool), double.Reply{
		Pieces: []string{"Here", " it is"},
		Calls:  []double.Call{{Name: "answer", Args: `{"z":1}`}},
	})
	require.Equal(t, `{"z":1}`, res.Text, "a preamble is no part of the answer")
	require.Len(t, pieces, 2, "and the end")
	res, _ = r.call(t, askVia(provider.ViaTool), double.Reply{Pieces: []string{"I", " will not"}})
	require.Equal(t, "I will not", res.Text, "without a call it is all there is")
	res, _ = r.call(t, askVia(provider.ViaTool), double.Reply{Calls: []double.Call{
		{Name: "answer", Args: `{"z":1}`},
		{Name: "answer", Args: `{"z":2}`},
	}})
	require.Equal(t, "{\"z\":1}\n{\"z\":2}", res.Text)
	require.Equal(t, provider.StopClean, res.Stop)
}

func TestCall_GivesCallsOfOtherTools(t *testing.T) {
	t.Parallel()
	for _, via := range vias {
		res, pieces := newRig(t, nil).call(t, askAs(via), double.Reply{
			Pieces: []string{"let me look"},
			Calls:  []double.Call{{ID: "c1", Name: "look", Args: `{"at":12345678901234567890}`}, {Name: "go"}},
		})
		require.Equal(t, []provider.ToolCall{
			{ID: "c1", Name: "look", Arguments: `{"at":12345678901234567890}`},
			{Name: "go", Arguments: "{}"},
		}, res.ToolCalls)
		require.Equal(t, provider.StopUnknown, res.Stop, "they were not offered")
		require.Equal(t, "let me look", res.Text)
		require.Equal(t, "tool_calls", pieces[len(pieces)-1].FinishReason)
	}
}

func TestCall_GivesImagesAndSounds(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	req := ask()
	req.Model = "gemini-2.5-double-image"
	res, _ := r.call(t, req, double.Reply{Pieces: []string{"a cat"}, Media: []double.Media{
		{MIME: "image/png", Data: []byte{0}, Thought: true},
		{MIME: "image/png", Data: []byte{1, 2}},
		{MIME: "image/png", Data: []byte{3}},
	}})
	require.Equal(t, "a cat", res.Text)
	require.Equal(t, []provider.Media{
		{MIME: "image/png", Data: []byte{1, 2}},
		{MIME: "image/png", Data: []byte{3}},
	}, res.Media)
	req.Model = "gemini-2.5-double-preview-tts"
	const pcm = "audio/L16;codec=pcm;rate=24000"
	res, pieces := r.call(t, req, double.Reply{Media: []double.Media{
		{MIME: pcm, Data: []byte{1, 2}},
		{MIME: pcm, Data: []byte{3}},
		{MIME: "audio/mpeg", Data: []byte{4}},
	}})
	require.Equal(t, []provider.Media{
		{MIME: pcm, Data: []byte{1, 2, 3}},
		{MIME: "audio/mpeg", Data: []byte{4}},
	}, res.Media)
	require.Len(t, pieces, 1)
}

func TestCall_BoundsTheAnswer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	half := strings.Repeat("x", provider.MaxAnswerBytes/2+1)
	image := double.Media{MIME: "image/png", Data: make([]byte, base64.StdEncoding.DecodedLen(len(half))+3)}
	for name, reply := range map[string]double.Reply{
		"text":     {Pieces: []string{half, half}},
		"thoughts": {Thoughts: []string{half, half}},
		"arguments": {Calls: []double.Call{
			{Name: "f", Args: `{"a":"` + half + `"}`},
			{Name: "f", Args: `{"a":"` + half + `"}`},
		}},
		"media":         {Media: []double.Media{image, image}},
		"media, text":   {Pieces: []string{half}, Media: []double.Media{image}},
		"one event":     {Pieces: []string{half + half + half}},
		"one long line": {ContentType: "text/event-stream", Raw: "data: " + strings.Repeat(" ", 11<<20) + "{}\n\n"},
		"one comment":   {ContentType: "text/event-stream", Raw: ": " + strings.Repeat(" ", 17<<20)},
		"many lines":    {ContentType: "text/event-stream", Raw: strings.Repeat("data: "+half+"\n", 3)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask()
			req.Thoughts = true
			require.Equal(t, provider.CodeContentTooLong, newRig(t, nil).fail(t, req, reply).Code)
		})
	}
}

func TestCall_TakesTheLargestAsset(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	image := double.Media{MIME: "image/png", Data: make([]byte, 6<<20)} // 8 MiB as base64
	res, _ := newRig(t, nil).call(t, ask(), double.Reply{Media: []double.Media{image}})
	require.Len(t, res.Media, 1)
	require.Len(t, res.Media[0].Data, 6<<20)
}

// Whatever a server streams, the call ends with an answer that keeps the port's
// promises or with a typed error.
func FuzzCall(f *testing.F) {
	for _, seed := range []string{
		long, longTool, "data: {}\n\n", "data: null\n\n", "data: [DONE]\n\n", "\x00\n\n",
		"{\n\"error\":{}}\n", "data: {\"error\":5}\n\n",
		"data: {\"error\":{\"code\":429,\"details\":[null]}}\n\n",
		"data: {\"candidates\":[null]}\n\n",
		"data: {\"candidates\":[{\"content\":{\"parts\":[null,{\"functionCall\":{}}]},\"finishReason\":\"STOP\"}]}\n\n",
		"data: {\"candidates\":[{\"citationMetadata\":7}]}\n\n",
		"data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n",
		"data: {\ndata: \"candidates\":[]}\n\n",
	} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	s := double.New(double.Options{})
	p, err := gemini.New(gemini.Config{BaseURL: s.URL(), Timeout: time.Second})
	require.NoError(f, err)
	f.Cleanup(func() {
		p.Close()
		s.Close()
	})
	f.Fuzz(func(t *testing.T, stream string, tool bool) {
		s.Enqueue(double.Reply{ContentType: "text/event-stream", Raw: stream})
		req := ask()
		if tool {
			req = askVia(provider.ViaTool)
		}
		var pieces []provider.Delta
		res, err := p.Call(t.Context(), req, func(d provider.Delta) error {
			pieces = append(pieces, d)
			return nil
		})
		if err != nil {
			_, ok := provider.As(err)
			require.True(t, ok, "%v", err)
			return
		}
		providertest.Check(t, res, pieces)
	})
}

// BenchmarkCall asks for an answer of 2 KB in 64 pieces.
func BenchmarkCall(b *testing.B) {
	var events []string
	for i := range 64 {
		end := ""
		if i == 63 {
			end = `,"finishReason":"STOP"`
		}
		events = append(events, fmt.Sprintf(`data: {"candidates":[{"content":{"parts":[{"text":%q}],"role":"model"}%s,"index":0}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":9,"totalTokenCount":17},"modelVersion":"gemini-2.5-double","responseId":"r"}`, strings.Repeat("x", 32), end))
	}
	reply := sse(events...)
	r := newRigOf(b, double.Options{Key: key, Answer: func(double.Recorded) double.Reply { return reply }}, nil)
	b.ReportAllocs()
	for b.Loop() {
		res, err := r.Call(b.Context(), ask(), func(provider.Delta) error { return nil })
		if err != nil || len(res.Text) != 2048 {
			b.Fatal(err, len(res.Text))
		}
	}
}
