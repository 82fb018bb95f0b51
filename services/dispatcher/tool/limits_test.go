package tool_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/tool"
)

func parseLimits(doc string) (*tool.Limits, error) {
	return tool.ParseLimits([]byte(doc), &settings.Names{Known: []string{"bank", "files"}}, &settings.Names{Known: []string{"planner"}})
}

func TestParseLimits_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ doc, want string }{
		"not JSON":             {`{`, "the document ends too early"},
		"empty":                {`{}`, `at "": want mcpServers, a2aAgents or both`},
		"unknown member":       {`{"mcpServers":{"bank":{"concurency":{"limit":1}}}}`, `did you mean concurrency?`},
		"unknown server":       {`{"mcpServers":{"bnak":{}}}`, `at "/mcpServers/bnak": no such MCP server; did you mean bank? there are bank, files; * is all others (--mcp-server)`},
		"unknown agent":        {`{"a2aAgents":{"bank":{}}}`, `at "/a2aAgents/bank": no such A2A agent; there are planner; * is all others (--a2a-agent)`},
		"limit":                {`{"mcpServers":{"bank":{"concurrency":{"limit":0}}}}`, `at "/mcpServers/bank/concurrency/limit": 0: want 1 to 10000`},
		"rate":                 {`{"mcpServers":{"bank":{"rate":{"limit":5000,"periodMs":1000}}}}`, `at "/mcpServers/bank/rate/limit": 5000: want 1 to 1000`},
		"period":               {`{"a2aAgents":{"*":{"rate":{"limit":5,"periodMs":1}}}}`, `at "/a2aAgents/*/rate/periodMs": 1: want 1000 to 86400000`},
		"priority":             {`{"mcpServers":{"bank":{"priority":11}}}`, `at "/mcpServers/bank/priority": 11: want -10 to 10`},
		"a server's key":       {`{"mcpServers":{"bank":{"concurrency":{"limit":1,"key":"arguments.id"}}}}`, `at "/mcpServers/bank/concurrency/key": "arguments.id": want tenant`},
		"a tool's key":         {`{"mcpServers":{"bank":{"tools":{"charge":{"rate":{"limit":1,"periodMs":1000,"key":"inputs.id"}}}}}}`, `want tenant or arguments.NAME`},
		"a key without a name": {`{"mcpServers":{"bank":{"tools":{"charge":{"concurrency":{"limit":1,"key":"arguments."}}}}}}`, `want tenant or arguments.NAME`},
		"tools of all servers": {`{"mcpServers":{"*":{"tools":{"charge":{}}}}}`, `at "/mcpServers/*/tools": limit a tool in the entry of its server`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseLimits(tt.doc)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestLimits_OfACall(t *testing.T) {
	t.Parallel()
	l, err := parseLimits(`{"mcpServers":{
		"bank":{"concurrency":{"limit":8},"tools":{"charge":{"concurrency":{"key":"arguments.to.account","limit":1},"rate":{"key":"tenant","limit":10,"periodMs":1000}}}},
		"*":{"concurrency":{"limit":32}}},
		"a2aAgents":{"planner":{"rate":{"limit":60,"periodMs":60000}}}}`)
	require.NoError(t, err)
	of := func(typeID, config, arguments string) (names, groups []string) {
		limits, _ := l.Of(tool.Call{TypeID: typeID, Tenant: "acme", Config: json.RawMessage(config), Arguments: json.RawMessage(arguments)})
		for _, c := range limits {
			names, groups = append(names, c.Name), append(groups, c.ID[len(c.ID)-1])
		}
		return names, groups
	}
	names, groups := of(node.TypeMCPCallTool, `{"server":"bank","tool":"charge"}`, `{"to":{"account": 1.0}}`)
	require.Equal(t, []string{"concurrency of mcp:bank:charge", "rate of mcp:bank:charge", "concurrency of mcp:bank"}, names)
	require.Equal(t, []string{"value:1.0", "tenant:acme", ""}, groups)
	_, groups = of(node.TypeMCPCallTool, `{"server":"bank","tool":"charge"}`, `{"to":"me"}`)
	require.Equal(t, []string{"", "tenant:acme", ""}, groups, "calls without the argument share a limit")
	_, same := of(node.TypeMCPCallTool, `{"server":"bank","tool":"charge"}`, `{"to":{"account":{"b":1,"a":2}}}`)
	_, other := of(node.TypeMCPCallTool, `{"server":"bank","tool":"charge"}`, `{"to":{"account": {"a": 2, "b": 1}}}`)
	require.Equal(t, same, other, "the order of members is irrelevant")
	names, _ = of(node.TypeMCPCallTool, `{"server":"bank","tool":"read"}`, `{}`)
	require.Equal(t, []string{"concurrency of mcp:bank"}, names)
	names, _ = of(node.TypeMCPCallTool, `{"server":"files","tool":"charge"}`, `{}`)
	require.Equal(t, []string{"concurrency of mcp:files"}, names, "each server has its own limit")
	names, _ = of(node.TypeA2ASendMessage, `{"agent":"planner"}`, ``)
	require.Equal(t, []string{"rate of a2a:planner"}, names)
	names, _ = of("core.noop", `{"server":"bank"}`, ``)
	require.Empty(t, names)
	none, priority := (*tool.Limits)(nil).Of(tool.Call{TypeID: node.TypeMCPCallTool})
	require.Empty(t, none)
	require.Zero(t, priority)
}

func TestLimits_PriorityOfACall(t *testing.T) {
	t.Parallel()
	l, err := parseLimits(`{"mcpServers":{"bank":{"priority":-2,"tools":{"charge":{"priority":5},"read":{}}},"*":{"priority":1}},"a2aAgents":{"planner":{"priority":3}}}`)
	require.NoError(t, err)
	for config, want := range map[string]int{
		`{"server":"bank","tool":"charge"}`:  5,
		`{"server":"bank","tool":"read"}`:    -2,
		`{"server":"bank","tool":"other"}`:   -2,
		`{"server":"files","tool":"charge"}`: 1,
	} {
		_, got := l.Of(tool.Call{TypeID: node.TypeMCPCallTool, Config: json.RawMessage(config)})
		require.Equal(t, want, got, config)
	}
	_, got := l.Of(tool.Call{TypeID: node.TypeA2ASendMessage, Config: json.RawMessage(`{"agent":"planner"}`)})
	require.Equal(t, 3, got)
}
