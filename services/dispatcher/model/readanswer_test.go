package model_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

func readerLoop(t *testing.T) *model.Loop {
	t.Helper()
	reg, err := provider.NewRegistry(mock.New(newScripts()))
	require.NoError(t, err)
	return model.New(model.Config{
		MaxAttempts: 3, Multiplier: 2, Timeout: time.Second,
		Defaults: model.Defaults{Provider: "mock", Model: "m", MaxTokens: 100},
	}, model.Deps{
		Models: reg, Schemas: schemas{}, Scrubber: func(string, string, bool) model.Scrubber { return plain{} },
		Clock: time.Now,
	})
}

// A pasted text has the documents that the same text has as the answer of a model.
func TestReadAnswer_FindsWhatARunFinds(t *testing.T) {
	t.Parallel()
	const kind = "vendor.x.ticket"
	type found struct {
		json, kind, path string
		envelope         bool
		offset           int
	}
	for name, tc := range map[string]struct {
		text, kind string
		want       []found
		detail     string
	}{
		"a payload":              {`{"a":1}`, kind, []found{{`{"a":1}`, kind, "direct", false, 0}}, ""},
		"a draft and the answer": {"First {\"a\":1}\nAnswer: {\"a\":2}", kind, []found{{`{"a":2}`, kind, "brace-walker", false, 22}}, ""},
		"a fenced one":           {"Sure:\n```json\n{\"a\":1}\n```", kind, []found{{`{"a":1}`, kind, "markdown-fence", false, 14}}, ""},
		"after thinking":         {"<think>{\"a\":1}</think>\n{\"a\":2}", kind, []found{{`{"a":2}`, kind, "brace-walker", false, 23}}, ""},
		"an envelope":            {`{"type":"vendor.x.ticket","payload":{"a":1}}`, "", []found{{`{"type":"vendor.x.ticket","payload":{"a":1}}`, kind, "direct", true, 0}}, ""},
		"an unknown kind":        {`{"type":"vendor.x.other","payload":{}}`, "", []found{{`{"type":"vendor.x.other","payload":{}}`, "vendor.x.other", "direct", true, 0}}, ""},
		"a payload without kind": {`{"a":1}`, "", nil, "its JSON document is not an envelope with type and payload"},
		"prose":                  {"Sorry, no.", kind, nil, "it is text, not a JSON document"},
		"nothing":                {" ", kind, nil, "it is empty"},
		"broken JSON":            {`{"a":1,}`, kind, nil, "its JSON has a trailing comma at byte 6"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, err := readerLoop(t).ReadAnswer(t.Context(), model.Question{Text: tc.text, Kind: tc.kind})
			require.NoError(t, err)
			var got []found
			for _, d := range read.Documents {
				require.True(t, json.Valid(d.JSON))
				got = append(got, found{string(d.JSON), d.Kind, d.Path, d.Envelope, d.Offset})
			}
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.detail, read.Detail)
			require.Equal(t, tc.detail != "", read.Reason != "")
		})
	}
}

func TestReadAnswer_RejectsAKindThatTheHostLacks(t *testing.T) {
	t.Parallel()
	_, err := readerLoop(t).ReadAnswer(t.Context(), model.Question{Text: "{}", Kind: "vendor.x.none"})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
}
