package workflow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// withChannels returns a definition with channels, and writing nodes with these configs.
func withChannels(channels string, configs ...string) []byte {
	nodes := []string{`{"id":"n","typeId":"core.noop","name":"x","position":{"x":0,"y":0},"config":{},"inputs":{}}`}
	for i, c := range configs {
		nodes = append(nodes, fmt.Sprintf(`{"id":"w%d","typeId":"core.channelWrite","name":"x","position":{"x":0,"y":0},"config":%s,"inputs":{}}`, i, c))
	}
	return []byte(`{"id":"wf","name":"wf","version":"1","nodes":[` + strings.Join(nodes, ",") +
		`],"edges":[],"triggers":[],"variables":[{"name":"taken","type":"string"}],"channels":` + channels + `,"metadata":{},"settings":{}}`)
}

// OpenWOP host contract §5.9: an unusable declaration is rejected with path, rule and remedy.
func TestParse_RejectsUnusableChannels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		channels string
		configs  []string
		path     string
		rule     string
		says     string
	}{
		"a name twice":               {`{"taken":{"reducer":"append"}}`, nil, "/channels/taken", "unique", "/variables/0/name"},
		"a default of another kind":  {`{"c":{"reducer":"append","default":{}}}`, nil, "/channels/c/default", "channel", "want an array"},
		"a default no counter takes": {`{"c":{"reducer":"counter","default":"1"}}`, nil, "/channels/c/default", "channel", "want a number"},
		"a schema that is none":      {`{"c":{"reducer":"append","schema":{"type":"text"}}}`, nil, "/channels/c/schema/type", "schema", ""},
		"an unknown reducer":         {`{"c":{"reducer":"sum"}}`, nil, "/channels/c/reducer", "pattern", ""},
		"no name":                    {`{}`, []string{`{"reducer":"append"}`}, "/nodes/1/config/channelName", "channel", "want the name"},
		"no reducer":                 {`{}`, []string{`{"channelName":"c"}`}, "/nodes/1/config/channelName", "channel", "declare it under channels"},
		"a reducer that is none":     {`{}`, []string{`{"channelName":"c","reducer":"sum"}`}, "/nodes/1/config/reducer", "channel", "want replace, append"},
		"a ttl of no time":           {`{}`, []string{`{"channelName":"c","reducer":"append","ttlMs":0}`}, "/nodes/1/config/ttlMs", "channel", "a year"},
		"another reducer":            {`{"c":{"reducer":"append"}}`, []string{`{"channelName":"c","reducer":"votes"}`}, "/nodes/1/config/reducer", "channel", "declared with reducer append"},
		"another ttl":                {`{"c":{"reducer":"append"}}`, []string{`{"channelName":"c","ttlMs":9}`}, "/nodes/1/config/ttlMs", "channel", "another ttlMs"},
		"two nodes disagree":         {`{}`, []string{`{"channelName":"c","reducer":"append"}`, `{"channelName":"c","reducer":"votes"}`}, "/nodes/2/config/reducer", "channel", "declared with reducer append"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, problems := workflow.Parse(withChannels(c.channels, c.configs...))
			require.Nil(t, d)
			require.Len(t, problems, 1)
			require.Equal(t, c.path, problems[0].Path)
			require.Equal(t, c.rule, problems[0].Rule)
			require.Contains(t, problems[0].Message, c.says)
		})
	}
}

// OpenWOP host contract §5.9: a write to an undeclared channel declares it.
func TestPinnedChannels_IncludeDeclaredAndWritten(t *testing.T) {
	t.Parallel()
	d, problems := workflow.Parse(withChannels(`{"c":{"reducer":"counter","default":1,"maxSize":1.0}}`,
		`{"channelName":"events","reducer":"append","ttlMs":200}`, `{"channelName":"events"}`, `{"channelName":"c"}`))
	require.Empty(t, problems)
	require.Equal(t, map[string]wire.Channel{
		"c":      {Reducer: "counter", Default: json.RawMessage(`1`), MaxSize: 1, SchemaVersion: 1},
		"events": {Reducer: "append", TTLMillis: 200},
	}, d.PinnedChannels())
	require.True(t, d.Channel("events").Implicit)
	require.False(t, d.Channel("c").Implicit)
	require.Nil(t, d.Channel("other"))
}
