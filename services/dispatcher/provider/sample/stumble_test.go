package sample_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/sample"
)

// said is what a model answers to a question about a ticket.
func said(t *testing.T, model string, messages ...string) string {
	t.Helper()
	req := provider.Request{
		Provider: sample.ID, Model: model,
		Schema: json.RawMessage(`{"type":"object","required":["team","urgent"],"properties":{"team":{"type":"string"},"urgent":{"type":"boolean"}}}`),
	}
	for _, m := range messages {
		content, err := json.Marshal(m)
		require.NoError(t, err)
		req.Messages = append(req.Messages, provider.Message{Role: "user", Content: content})
	}
	res, err := sample.New(0).Call(t.Context(), req, func(provider.Delta) error { return nil })
	require.NoError(t, err)
	return res.Text
}

func TestStumbles_LeavesAMemberOutUntilItIsTold(t *testing.T) {
	t.Parallel()
	members := func(text string) (names []string) {
		var v map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(text), &v))
		for name := range v {
			names = append(names, name)
		}
		return names
	}
	require.Equal(t, []string{"team"}, members(said(t, sample.Stumbles, "A mail.")))
	require.ElementsMatch(t, []string{"team", "urgent"}, members(said(t, sample.Stumbles, "A mail.", "Your previous answer was not accepted: no.")))
	require.ElementsMatch(t, []string{"team", "urgent"}, members(said(t, sample.Plain, "A mail.")))
}

func TestStrays_AnswersWithAFile(t *testing.T) {
	t.Parallel()
	var v struct{ Type string }
	require.NoError(t, json.Unmarshal([]byte(said(t, sample.Strays, "A mail.")), &v))
	require.Equal(t, "media.file", v.Type)
}
