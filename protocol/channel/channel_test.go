package channel_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/channel"
	"waybill.dev/waybill/protocol/wire"
)

// OpenWOP host contract §5.9: an exact nodeId, a typeId, or a dotted prefix and *.
func TestAccess_IsStrictIfThereIsAList(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		access      string
		read, write bool
	}{
		"absent":                {``, true, true},
		"public":                {`"public"`, true, true},
		"private":               {`"private"`, false, false},
		"by node":               {`{"writers":["tally"]}`, true, true},
		"by type":               {`{"writers":["core.ai.callPrompt"]}`, true, true},
		"by prefix":             {`{"readers":["core.ai.*"],"writers":["core.*"]}`, true, true},
		"by star":               {`{"writers":["*"]}`, true, true},
		"another prefix":        {`{"writers":["core.mcp.*"]}`, true, false},
		"a prefix is dotted":    {`{"writers":["core.ai.call*"]}`, true, false},
		"the prefix of a node":  {`{"writers":["tal"]}`, true, false},
		"an empty list":         {`{"readers":[]}`, false, true},
		"each side for itself":  {`{"readers":["other"],"writers":["tally"]}`, false, true},
		"a node like no prefix": {`{"writers":["tally.*"]}`, true, false},
	} {
		a := channel.ParseAccess(json.RawMessage(c.access))
		require.Equal(t, c.read, a.MayRead("tally", "core.ai.callPrompt"), name)
		require.Equal(t, c.write, a.MayWrite("tally", "core.ai.callPrompt"), name)
	}
}

// A write that does not fit the reducer or the schema is rejected. The error states what is allowed
// and does not contain the value.
func TestCheck_ValidatesWrites(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-secret"
	for name, c := range map[string]struct {
		decl   wire.Channel
		schema string
		before []string
		value  string
		says   string
	}{
		"any value":                     {wire.Channel{Reducer: "replace"}, ``, nil, `null`, ``},
		"a number to a counter":         {wire.Channel{Reducer: "counter"}, ``, nil, `-1.5`, ``},
		"a text to a counter":           {wire.Channel{Reducer: "counter"}, ``, nil, `"` + secret + `"`, "want a number"},
		"beyond all numbers":            {wire.Channel{Reducer: "counter"}, ``, []string{`1.7e308`}, `1.7e308`, "want a smaller one"},
		"a list to merge":               {wire.Channel{Reducer: "merge"}, ``, nil, `[]`, "want an object"},
		"too many members":              {wire.Channel{Reducer: "merge", MaxSize: 1}, ``, []string{`{"a":1}`}, `{"b":1}`, "maxSize"},
		"as many members as before":     {wire.Channel{Reducer: "merge", MaxSize: 1}, ``, []string{`{"a":1}`}, `{"a":2}`, ``},
		"a vote without voter":          {wire.Channel{Reducer: "votes"}, ``, nil, `{"vote":1}`, "voter"},
		"feedback of no form":           {wire.Channel{Reducer: "feedback"}, ``, nil, `"x"`, "author, text, timestamp"},
		"a message without id":          {wire.Channel{Reducer: "message"}, ``, nil, `{"role":"user"}`, "messageId"},
		"one message too many":          {wire.Channel{Reducer: "message", MaxSize: 1}, ``, []string{`{"messageId":"1"}`}, `{"messageId":"2"}`, "maxSize"},
		"the same message again":        {wire.Channel{Reducer: "message", MaxSize: 1}, ``, []string{`{"messageId":"1"}`}, `{"messageId":"1"}`, ``},
		"a value of the schema":         {wire.Channel{Reducer: "append"}, `{"type":"string"}`, nil, `"x"`, ``},
		"a value of another":            {wire.Channel{Reducer: "append"}, `{"type":"string","maxLength":3}`, nil, `"` + secret + `"`, "not of the channel's schema"},
		"a schema of the whole list":    {wire.Channel{Reducer: "append"}, `{"type":"array","maxItems":2,"items":{"type":"string"}}`, []string{`"a"`}, `"b"`, ``},
		"the whole list grows too long": {wire.Channel{Reducer: "append"}, `{"type":"array","maxItems":2}`, []string{`"a"`, `"b"`}, `"c"`, "not of the channel's schema"},
		"ages are no part of the list":  {wire.Channel{Reducer: "append", TTLMillis: 9000}, `{"type":"array","items":{"type":"string"}}`, []string{`"a"`}, `"b"`, ``},
		"an array is judged as a value": {wire.Channel{Reducer: "append"}, `{"type":"array","items":{"type":"string"}}`, nil, `[1]`, "not of the channel's schema"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ch, err := channel.Declare("c", c.decl, json.RawMessage(c.schema), channel.Access{})
			require.NoError(t, err)
			err = ch.Check(fold(c.decl, c.before...), json.RawMessage(c.value), at)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, `channel "c"`)
			require.NotContains(t, err.Error(), secret)
		})
	}
}

func TestDeclare_RejectsAnInvalidSchema(t *testing.T) {
	t.Parallel()
	_, err := channel.Declare("c", wire.Channel{Reducer: "replace"}, json.RawMessage(`{"type":"text"}`), channel.Access{})
	require.Error(t, err)
}

// A run pins only what folding its writes requires: the schema is pinned for older writes only.
func TestPinned_HoldsTheSchemaForOlderWritesOnly(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"string"}`)
	plain, err := channel.Declare("c", wire.Channel{Reducer: "append", SchemaVersion: 2}, schema, channel.Access{})
	require.NoError(t, err)
	require.Empty(t, plain.Pinned().Schema)
	reading, err := channel.Declare("c", wire.Channel{Reducer: "append", SchemaVersion: 2, CompatibleWith: []int64{1}}, schema, channel.Access{})
	require.NoError(t, err)
	require.JSONEq(t, string(schema), string(reading.Pinned().Schema))
	require.Equal(t, wire.ChannelWritten{Channel: "c", Value: schema, Reducer: "append", NodeID: "n", WrittenAt: after(0), SchemaVersion: 2}, reading.Written("n", schema, at))
}

func TestValidReducer_AcceptsVendorNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"append": true, "message": true, "vendor.acme.dedupe": true, "vendor.acme": false, "sum": false, "": false} {
		require.Equal(t, want, channel.ValidReducer(name), name)
	}
}
