package conformance

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/a2a"
	"waybill.dev/waybill/test/double/mcp"
	"waybill.dev/waybill/test/double/openaicompat"
	"waybill.dev/waybill/test/harness"
)

// equipped is a host with features that the shared one lacks: a pack, a tool, an agent, a model
// server with reasoning, and a low limit on assets in the log.
var equipped struct {
	once  sync.Once
	host  *harness.Shared
	tool  *mcp.Server
	agent *a2a.Server
	model *openaicompat.Server
}

// equip starts the doubles. The host starts on first use.
func equip() {
	equipped.tool, equipped.agent, equipped.model = mcp.New(mcp.Options{}), a2a.New(a2a.Options{}), openaicompat.New(openaicompat.Options{})
	equipped.host = &harness.Shared{Args: slices.Concat(recorded(), []string{
		"--durability", "process", "--test-seams", "--lease", "1s", "--api-key", testKey + "=acme:*", "--packs", "testdata/packs", "--max-inline-media-bytes", "100",
		"--mcp-server", "tools=" + equipped.tool.URL(), "--a2a-agent", "desk=" + equipped.agent.URL(), "--provider", "lab=" + equipped.model.URL(),
	})}
}

// unequip stops everything that equip started, and returns the host's output.
func unequip() string {
	if equipped.host == nil {
		return ""
	}
	log := equipped.host.Close()
	equipped.tool.Close()
	equipped.agent.Close()
	equipped.model.Close()
	return log
}

func equippedClient(t *testing.T) *harness.Client {
	t.Helper()
	c := client(t, testKey) // skips under -short
	equipped.once.Do(equip)
	return c.To(equipped.host.Host(t), testKey)
}

func TestFeatures_OfPacksToolsAndModels(t *testing.T) {
	t.Parallel()
	c := equippedClient(t)
	large := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("\x89PNG...."), 20))
	for _, f := range []feature{
		{
			rule: "§16.3 a model that lacks what is required is substituted, and the log says so first",
			doc:  definition("feature-substituted", node("sort", "vendor.acme.desk.sort", "{}", "{}"), "", "", ""),
			says: map[string][]string{"sort": {"billing"}},
			want: "model.capability.substituted@sort sort",
		},
		{
			rule: "§17 a large asset is recorded by its address",
			doc:  definition("feature-media-stored", scripted("paints", `"envelopeContract":{"accepts":["media.image"]}`), "", "", ""),
			says: map[string][]string{"paints": {fmt.Sprintf(`{"type":"media.image","payload":{"base64":%q,"bytes":160,"mimeType":"image/png"}}`, large)}},
			want: "artifact.created@paints paints",
		},
	} {
		t.Run(f.rule, func(t *testing.T) {
			t.Parallel()
			f.shows(t, c)
		})
	}
}

// OpenWOP envelope contract §12: results of tools and agents are untrusted, and so is everything
// derived from them.
func TestFeatures_ToolResultsTaint(t *testing.T) {
	t.Parallel()
	f := feature{
		doc: definition("feature-taint", join(
			set("before", "own", `"mine"`), node("tool", "core.mcp.callTool", `{"server":"tools","tool":"`+mcp.Tool+`","arguments":{"say":"hello"}}`, "{}"),
			node("agent", "core.a2a.sendMessage", `{"agent":"desk","message":"ask"}`, "{}"), node("keep", "core.setVariable", `{"name":"said"}`, "{}"),
			node("read", "core.identity", "{}", `{"again":{"type":"variable","variableName":"said"}}`), node("model", "core.ai.callPrompt", `{"provider":"sample","model":"sample-1","prompt":"Summarise: {{again}}"}`, "{}"),
		), join(chain("before", "tool", "agent", "keep", "read"), more(into("read", "model", "again"), `"sourceOutput":"again"`)), "", ""),
		want: "before tool agent keep read model",
	}
	untrusted := false
	for _, e := range f.shows(t, equippedClient(t)) {
		untrusted = untrusted || e.Type == "node.completed" && e.NodeID == "tool"
		require.Equal(t, untrusted, bytes.Contains(e.Raw, []byte(`"contentTrust":"untrusted"`)), "%s", e.Raw)
	}
}

// OpenWOP host contract §6.6, envelope contract §12: untrusted content passes no gate. A person is asked, and
// the log says why.
func TestFeatures_UntrustedContentBlocksApproval(t *testing.T) {
	t.Parallel()
	c := equippedClient(t)
	gate := node("gate", "core.interrupt", `{"kind":"low-confidence","data":{"agentId":"core.sorter","observed":0.99}}`, `{"input":{"type":"variable","variableName":"said"}}`)
	own := register(t, c, definition("feature-gate-own", join(set("first", "said", `"spam"`), gate), chain("first", "gate"), "", ""))
	_, events := run(t, c, `{"workflowId":"`+own+`"}`)
	require.Equal(t, "first gate", path(events), "trusted content passes")

	tool := node("first", "core.mcp.callTool", `{"server":"tools","tool":"`+mcp.Tool+`","arguments":{"say":"spam"}}`, "{}")
	other := definition("feature-gate-tool", join(tool, node("keep", "core.setVariable", `{"name":"said"}`, "{}"), gate), chain("first", "keep", "gate"), "", "")
	id, _ := suspended(t, c, register(t, c, other), "waiting-approval")
	said := 0
	for _, e := range poll(t, c, id, "").Events {
		if bytes.Contains(e, []byte(`"code":"untrusted_content_blocks_approval"`)) {
			said++
			require.Contains(t, string(e), `"contentTrust":"untrusted"`)
		}
	}
	require.Equal(t, 1, said)
	require.Equal(t, http.StatusOK, answer(t, c, id, "gate", `{"decision":"ham"}`).Status)
	await(t, c, id, patience, "completed")
}

// OpenWOP host contract §2.3 (reasoningVerbosity): reasoning is recorded in pieces as it arrives,
// and once whole.
func TestFeatures_ReasoningIsRecorded(t *testing.T) {
	t.Parallel()
	c := equippedClient(t)
	equipped.model.Enqueue(openaicompat.Reply{Thoughts: []string{"Let me ", "think."}, Pieces: []string{"Done."}})
	events := feature{
		doc:  definition("feature-thoughts", node("thinks", "core.ai.callPrompt", `{"provider":"lab","model":"`+openaicompat.DefaultModel+`","prompt":"hi","thoughts":true}`, "{}"), "", "", ""),
		want: "agent.reasoned@thinks thinks",
	}.shows(t, c)
	require.Positive(t, count(events, "agent.reasoning.delta"))
}
