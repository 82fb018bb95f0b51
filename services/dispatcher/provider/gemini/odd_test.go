package gemini_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	double "waybill.dev/waybill/test/double/gemini"
)

// Streams of gateways and newer models, as they were reported.
func TestOdd_Answers(t *testing.T) {
	t.Parallel()
	const (
		first  = `{"candidates":[{"content":{"role":"model","parts":[{"text":"on"}]},"index":0}]}`
		second = `{"candidates":[{"content":{"role":"model","parts":[{"text":"e"}]},"index":0}]}`
	)
	end := func(more string) string { return `{"candidates":[{"finishReason":` + more + `}]}` }
	events := func(docs ...string) double.Reply {
		return served(eventStream, "data: "+strings.Join(docs, "\n\ndata: ")+"\n\n")
	}
	one := func(candidate string) string { return `{"candidates":[` + candidate + `]}` }
	for name, tc := range map[string]struct {
		double.Reply
		stop provider.StopClass
	}{
		"a trailing stop":              {Reply: events(first, second, `{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}]}`)},
		"a trailing signature":         {Reply: events(first, second, `{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"AAAA"}]},"finishReason":"STOP"}]}`)},
		"no content at the end":        {Reply: events(first, second, end(`"STOP"`))},
		"content null at the end":      {Reply: events(first, second, `{"candidates":[{"content":null,"finishReason":"STOP"}]}`)},
		"parts null":                   {Reply: events(first, second, `{"candidates":[{"content":{"role":"model","parts":null},"finishReason":"STOP"}]}`)},
		"content without parts":        {Reply: events(first, second, `{"candidates":[{"content":{"role":"model"},"finishReason":"STOP"}]}`)},
		"an empty candidate list":      {Reply: events(first, `{"candidates":[]}`, second, end(`"STOP"`))},
		"a null candidate":             {Reply: events(first, `{"candidates":[null]}`, second, end(`"STOP"`))},
		"an empty document":            {Reply: events(first, `{}`, second, end(`"STOP"`))},
		"stop in lower case":           {Reply: events(first, second, end(`"stop"`))},
		"FINISH_REASON_STOP":           {Reply: events(first, second, end(`"FINISH_REASON_STOP"`))},
		"end_turn":                     {Reply: events(first, second, end(`"end_turn"`))},
		"length":                       {Reply: events(first, second, end(`"length"`)), stop: provider.StopTruncated},
		"max_tokens":                   {Reply: events(first, second, end(`"max_tokens"`)), stop: provider.StopTruncated},
		"content_filter":               {Reply: events(first, second, end(`"content_filter"`)), stop: provider.StopRefused},
		"safety in lower case":         {Reply: events(first, second, end(`"safety"`)), stop: provider.StopRefused},
		"MODEL_ARMOR":                  {Reply: events(first, second, end(`"MODEL_ARMOR"`)), stop: provider.StopRefused},
		"an unspecified reason first":  {Reply: events(strings.Replace(first, `"index":0`, `"finishReason":"FINISH_REASON_UNSPECIFIED","index":0`, 1), second, end(`"STOP"`))},
		"a reason in each":             {Reply: events(strings.Replace(first, `"index":0`, `"finishReason":"","index":0`, 1), second, end(`"STOP"`))},
		"counts as text":               {Reply: events(first, second, `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":"8"}}`)},
		"counts that are odd":          {Reply: events(first, second, `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":8.0,"trafficType":"ON_DEMAND","newThing":{"a":1}}}`)},
		"usage null":                   {Reply: events(first, second, `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":null}`)},
		"an index of text":             {Reply: events(strings.Replace(first, `"index":0`, `"index":"0"`, 1), second, end(`"STOP"`))},
		"an index null":                {Reply: events(strings.Replace(first, `"index":0`, `"index":null`, 1), second, end(`"STOP"`))},
		"ratings":                      {Reply: events(strings.Replace(first, `"index":0`, `"safetyRatings":[{"category":"HARM_CATEGORY_HATE_SPEECH","probability":"NEGLIGIBLE"}],"index":0`, 1), second, end(`"STOP"`))},
		"a date of another form":       {Reply: events(strings.Replace(first, `{"candidates"`, `{"createTime":"soon","responseId":7,"candidates"`, 1), second, end(`"STOP"`))},
		"grounding":                    {Reply: events(first, second, `{"candidates":[{"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":"x"}}]},"citationMetadata":{"citations":[]}}]}`)},
		"code that was run":            {Reply: events(one(`{"content":{"parts":[{"executableCode":{"code":"x","language":"PYTHON"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"y"}},{"text":"one"}]},"finishReason":"STOP"}`))},
		"a thought in the same piece":  {Reply: events(one(`{"content":{"parts":[{"thought":true,"text":"hm {"},{"text":"one"}]},"finishReason":"STOP"}`))},
		"a wrapped response":           {Reply: events(`{"response":`+first+`}`, `{"response":`+second+`}`, `{"response":`+end(`"STOP"`)+`}`)},
		"a word to keep alive":         {Reply: events(first, "ping", second, end(`"STOP"`))},
		"one line feed each":           {Reply: served(eventStream, "data: "+first+"\ndata: "+second+"\ndata: "+end(`"STOP"`)+"\n")},
		"a prompt that is not blocked": {Reply: events(strings.Replace(first, `{"candidates"`, `{"promptFeedback":{},"candidates"`, 1), second, end(`"STOP"`))},
		"blocked for no reason":        {Reply: events(strings.Replace(first, `{"candidates"`, `{"promptFeedback":{"blockReason":"BLOCK_REASON_UNSPECIFIED"},"candidates"`, 1), second, end(`"STOP"`))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, _ := newRig(t, nil).call(t, ask(), tc.Reply)
			require.Equal(t, "one", res.Text)
			if tc.stop == "" {
				tc.stop = provider.StopClean
			}
			require.Equal(t, tc.stop, res.Stop)
		})
	}
	for counts, want := range map[string]provider.Usage{
		`{"promptTokenCount":"8","candidatesTokenCount":9.0,"totalTokenCount":"17"}`: {InputTokens: 8, OutputTokens: 9, TotalTokens: 17, Known: true},
		`{"promptTokenCount":4294967296,"candidatesTokenCount":1e300}`:               {InputTokens: 4294967296, OutputTokens: 1 << 40, Known: true},
		`{"promptTokenCount":"many"}`:                                                {},
		`{"promptTokenCount":-8}`:                                                    {Known: true},
		`[8]`:                                                                        {},
	} {
		res, _ := newRig(t, nil).call(t, ask(), events(first, second, `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":`+counts+`}`))
		require.Equal(t, want, res.Usage, counts)
	}
}
