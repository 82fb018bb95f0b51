package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// promptCanary is the secret of the host's test seams.
const promptCanary = "canary-4b1f9e27d0c8a635"

// promptFiles are a host's own templates, a pack's, and a workflow that names both.
var promptFiles = map[string]string{
	"prompts/clerk.json": `{"templateId":"clerk","version":"1.0.0","kind":"system","text":"You sort the mail of {{tenant}}. Log in with {{key}}.","variables":[
		{"name":"tenant","type":"string","required":true,"source":"context"},{"name":"key","type":"string","required":true,"source":"secret"}]}`,
	"prompts/clerk-2.json":    `{"templateId":"clerk","version":"2.0.0","kind":"system","text":"Too new."}`,
	"packs/desk/pack.json":    `{"name":"vendor.acme.desk","version":"1.0.0","engines":{"openwop":">=1.0"}}`,
	"packs/desk/waybill.json": `{"prompts":["prompts/sort.json"]}`,
	"packs/desk/prompts/sort.json": `{"templateId":"vendor.acme.sort","version":"1.1.0","kind":"user","text":"Sort this: {{mail}}{{note}}","variables":[
		{"name":"mail","type":"string","required":true,"source":"variable"},{"name":"note","type":"string","required":false}]}`,
	"workflows/sort.json": `{"id":"sort","name":"Sort","version":"1.0.0","nodes":[{"id":"ai","typeId":"core.ai.callPrompt","name":"Sort","position":{"x":0,"y":0},"inputs":{},"config":{
		"systemPromptRef":{"templateId":"clerk","version":"1.0.0","variableOverrides":{"key":"openwop-conformance-canary-secret"}},
		"userPromptRef":"prompt:vendor.acme.sort"}}],"edges":[],"triggers":[],
		"variables":[{"name":"mail","type":"string"}],"metadata":{},"settings":{}}`,
}

func promptHost(t *testing.T, observability string) (*harness.Host, *harness.Client) {
	t.Helper()
	needsHost(t)
	dir := writeFiles(t, promptFiles)
	h := harness.StartWith(t, harness.Options{
		Args: []string{
			"--prompts", filepath.Join(dir, "prompts"), "--packs", filepath.Join(dir, "packs"), "--workflows", filepath.Join(dir, "workflows"),
			"--prompt-observability", observability, "--test-seams", "--durability", "process",
		},
		Env: []string{"OPENWOP_CANARY_SECRET_VALUE=" + promptCanary},
	})
	return h, h.Client("dev-key")
}

// OpenWOP envelope contract §16.3, §19.2, §25: the event of a real run.
func TestPrompts_ARunRecordsTheSourcesOfItsPrompt(t *testing.T) {
	t.Parallel()
	h, c := promptHost(t, "full")
	schemas := harness.LoadSchemas(t)
	events, snap := finish(t, c, schemas, start(t, c, `{"workflowId":"sort","inputs":{"mail":"dear sirs"}}`))
	require.Equal(t, "completed", snap.Status, "%s", h.Log())
	types := names(events)
	require.Equal(t, []string{"run.started", "node.started", "prompt.composed"}, types[:3], "before the model is called")
	require.Contains(t, types[3:], "provider.usage")
	require.NotContains(t, types[3:], "prompt.composed")
	require.NoError(t, schemas.Payload("prompt.composed", events[2].Payload))
	const system, user = "You sort the mail of default. Log in with [REDACTED:openwop-conformance-canary-secret].", "Sort this: dear sirs"
	var p struct {
		NodeID, Kind, Hash, ContentTrust   string
		Refs                               []string
		Composed, SystemPrompt, UserPrompt string
		VariableHashes                     map[string]string
		VariableBindings                   map[string]string
	}
	require.NoError(t, json.Unmarshal(events[2].Payload, &p))
	sum := sha256.Sum256([]byte(p.Composed))
	require.Equal(t, []string{"prompt:clerk@1.0.0", "prompt:vendor.acme.sort@1.1.0"}, p.Refs)
	require.Equal(t, "ai system+user trusted", p.NodeID+" "+p.Kind+" "+p.ContentTrust)
	require.Equal(t, []string{system, user}, []string{p.SystemPrompt, p.UserPrompt})
	require.JSONEq(t, `{"system":"`+system+`","messages":[{"role":"user","content":"`+user+`"}]}`, p.Composed)
	require.Equal(t, "sha256:"+hex.EncodeToString(sum[:]), p.Hash)
	require.Equal(t, map[string]string{"tenant": "default", "key": "[REDACTED:openwop-conformance-canary-secret]", "mail": "dear sirs", "note": ""}, p.VariableBindings)
	require.Len(t, p.VariableHashes, 4)
	for _, e := range events {
		require.NotContains(t, string(e.Raw), promptCanary)
	}
	require.NotContains(t, h.Log(), promptCanary)

	a := get(t, c, "/.well-known/openwop")
	require.NoError(t, schemas.Validate("capabilities.schema.json", a.Body))
	require.Contains(t, string(a.Body), `"observability":"full"`)
}

func TestPrompts_FollowTheObservabilitySetting(t *testing.T) {
	t.Parallel()
	_, c := promptHost(t, "off")
	schemas := harness.LoadSchemas(t)
	events, snap := finish(t, c, schemas, start(t, c, `{"workflowId":"sort","inputs":{"mail":"dear sirs"}}`))
	require.Equal(t, "completed", snap.Status)
	require.NotContains(t, names(events), "prompt.composed")

	// A node whose required variable has no value makes no model call.
	events, snap = finish(t, c, schemas, start(t, c, `{"workflowId":"sort"}`))
	require.Equal(t, "failed", snap.Status)
	require.Equal(t, "prompt_variable_unresolved", snap.Error.Code)
	require.Contains(t, snap.Error.Message, "mail")
	require.NotContains(t, names(events), "provider.usage")

	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", `{"id":"lost","name":"L","version":"1.0.0",
		"nodes":[{"id":"ai","typeId":"core.ai.callPrompt","name":"L","position":{"x":0,"y":0},"config":{"userPromptRef":"prompt:gone"},"inputs":{}}],
		"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, a.Status, "%s", a.Body)
	require.Contains(t, string(a.Body), "/nodes/0/config/userPromptRef")
}
