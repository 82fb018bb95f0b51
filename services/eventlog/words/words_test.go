package words_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/words"
)

func TestAsked_SplitsAndRejects(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"Refund  ME, refund!":     {"refund", "me"},
		"order-4711 a1":           {"order", "4711", "a1"},
		"Ärger 返金 ok":             {"ärger", "返", "金", "ok"},
		"金":                       {"金"},
		strings.Repeat("é", 30):   {strings.Repeat("é", 24)},
		"can't \x00 \xff stop\t😀": {"can", "stop"},
	} {
		got, err := words.Asked(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", " -- ", "a", "a b", "a1 b2 c3 d4 e5 f6 g7 h8 i9"} {
		_, err := words.Asked(text)
		require.Error(t, err, text)
	}
}

func events(t *testing.T, all ...wire.Event) *frame.Frame {
	t.Helper()
	body, err := json.Marshal(all)
	require.NoError(t, err)
	f := &frame.Frame{Kind: subject.Step, Body: body}
	for _, e := range all {
		f.Types = append(f.Types, e.Type)
	}
	return f
}

func TestOfFrame_HasValuesOfContentsWithoutNames(t *testing.T) {
	t.Parallel()
	f := events(t,
		wire.Event{Type: wire.EventNodeStarted, Payload: json.RawMessage(`{"nodeId":"started"}`)},
		wire.Event{Type: wire.EventNodeCompleted, Payload: json.RawMessage(`{"outputs":{"name":["A refund",{"deep":"Deeper"}],"n":4711,"yes":true},"last":"End"}`)},
	)
	require.Equal(t, []string{"a", "refund", "deeper", "4711", "end"}, words.OfFrame(f))
	require.Empty(t, words.OfFrame(events(t, wire.Event{Type: wire.EventOutputChunk, Payload: json.RawMessage(`{"text":"x"}`)})))
	f.Body = []byte("[")
	require.Empty(t, words.OfFrame(f))
}

func TestOfFrame_BoundsItsWords(t *testing.T) {
	t.Parallel()
	var long strings.Builder
	for n := range 5000 {
		fmt.Fprintf(&long, "w%d ", n)
	}
	payload, err := json.Marshal(map[string]string{"text": long.String()})
	require.NoError(t, err)
	require.Len(t, words.OfFrame(events(t, wire.Event{Type: wire.EventRunFailed, Payload: payload})), words.Max)
}

func FuzzAsked(f *testing.F) {
	f.Add("refund 返金")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := words.Asked(text)
		if err != nil {
			return
		}
		again, err := words.Asked(strings.Join(got, " "))
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}
