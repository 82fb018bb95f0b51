package settingsfile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/host/settingsfile"
)

func kindOf(t *testing.T, name string) settingsfile.Kind {
	t.Helper()
	all := settingsfile.Kinds()
	i := slices.IndexFunc(all, func(k settingsfile.Kind) bool { return k.Name == name })
	require.GreaterOrEqual(t, i, 0)
	return all[i]
}

// Each document is accepted, and has one probable mistake: the path, and a part of the message.
func TestDoubts_FindProbableMistakes(t *testing.T) {
	t.Parallel()
	house := func(with string) string {
		return `{"providers":{"house":{"baseUrl":"http://127.0.0.1:11434/v1",` + with + `}}}`
	}
	openai := func(with string) string { return `{"providers":{"openai":{` + with + `}}}` }
	models := func(with string) string { return `{"version":1,"asOf":"2026-01-31",` + with + `}` }
	for kind, docs := range map[string]map[string][2]string{
		"provider-settings": {
			`{"providers":{"house":{"baseUrl":"http://localhost:11434/v1/v1"}}}`:         {"/providers/house/baseUrl", "/v1 twice"},
			`{"providers":{"house":{"baseUrl":"http://localhost:11434"}}}`:               {"/providers/house/baseUrl", "want /v1"},
			`{"providers":{"house":{"baseUrl":"https://YOUR-RESOURCE.example.com/v1"}}}`: {"/providers/house/baseUrl", "placeholder"},
			openai(``):                                                          {"/providers/openai", "empty"},
			openai(`"onError":{}`):                                              {"/providers/openai/onError", "no effect"},
			openai(`"onError":{"models":[]}`):                                   {"/providers/openai/onError", "no effect"},
			house(`"onError":{"models":["house/a"]}`):                           {"/providers/house/onError/models/0", "same provider"},
			openai(`"timeouts":{"callMs":300}`):                                 {"/providers/openai/timeouts/callMs", "write 300000"},
			openai(`"timeouts":{"silenceMs":30}`):                               {"/providers/openai/timeouts/silenceMs", "write 30000"},
			openai(`"maxTimeoutMs":3600`):                                       {"/providers/openai/maxTimeoutMs", "write 3600000"},
			openai(`"maxTimeoutMs":60000,"timeouts":{"callMs":600000}`):         {"/providers/openai/maxTimeoutMs", "below callMs"},
			openai(`"timeouts":{"firstByteMs":600000,"callMs":60000}`):          {"/providers/openai/timeouts/firstByteMs", "longer than callMs"},
			house(`"key":{"env":"gsk_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5z"}`):  {"/providers/house/key/env", "the secret itself"},
			house(`"key":{"file":"sk-proj-abcdef0123456789"}`):                  {"/providers/house/key/file", "the secret itself"},
			house(`"query":{"key":"AIzaSyA0123456789abcdefghijklmnopqrstuvw"}`): {"/providers/house/query/key", "secretHeaders"},
			house(`"headers":{"X-Portkey-Api-Key":"pk-live-0123456789abcdef"}`): {"/providers/house/headers/X-Portkey-Api-Key", "secretHeaders"},
			house(`"headers":{"X-Team":""}`):                                    {"/providers/house/headers/X-Team", "empty"},
			house(`"body":{"temprature":0}`):                                    {"/providers/house/body/temprature", "did you mean temperature?"},
			house(`"body":{"max_tokens":5}`):                                    {"/providers/house/body/max_tokens", "maxTokens of each"},
		},
		"provider-policies": {
			`{"tenants":{"acme":{}}}`:                                                                         {"/tenants/acme", "no provider"},
			`{"tenants":{"acme":{"sample":{"mode":"required"}}}}`:                                             {"/tenants/acme/sample/mode", "no key"},
			`{"tenants":{"acme":{"openai":{"mode":"restricted","allowedModels":[]}}}}`:                        {"/tenants/acme/openai/allowedModels", "allows no model"},
			`{"tenants":{"acme":{"openai":{"mode":"restricted","allowedModels":[""]}}}}`:                      {"/tenants/acme/openai/allowedModels/0", "blank"},
			`{"tenants":{"acme":{"openai":{"mode":"restricted","allowedModels":["a","a"]}}}}`:                 {"/tenants/acme/openai/allowedModels/1", "twice"},
			`{"tenants":{"acme":{"openai":{"mode":"restricted","allowedModels":["gpt-*","gpt-6.1-terra"]}}}}`: {"/tenants/acme/openai/allowedModels/1", "gpt-* allows it"},
		},
		"tenant-limits": {
			`{"tenants":{}}`: {"/tenants", "no tenant"},
			`{"tenants":{"acme":{},"*":{"concurrency":{"limit":5}}}}`:           {"/tenants/acme", "no limits"},
			`{"tenants":{"acme":{"weight":2},"*":{"concurrency":{"limit":5}}}}`: {"/tenants/acme", "not merged"},
			`{"tenants":{"acme":{"weight":2},"Acme":{"weight":3}}}`:             {"/tenants/acme", "case"},
			`{"tenants":{"acme":{"rate":{"limit":10,"periodMs":3600}}}}`:        {"/tenants/acme/rate/periodMs", "write 3600000"},
		},
		"rate-limits": {
			`{}`:                                   {"", "no limit"},
			`{"limits":["key=1/d,burst=1000000"]}`: {"/limits/0", "burst"},
			`{"limits":["tenant=100/m","tenant:start=600/m"]}`: {"/limits/1", "no effect"},
		},
		"tool-limits": {
			`{"mcpServers":{"bank":{}}}`:                                                                         {"/mcpServers/bank", "limits nothing"},
			`{"mcpServers":{"bank":{"tools":{"charge":{}}}}}`:                                                    {"/mcpServers/bank/tools/charge", "limits nothing"},
			`{"mcpServers":{"https://a.example":{"concurrency":{"limit":1}}}}`:                                   {"/mcpServers/https:~1~1a.example", "--mcp-server"},
			`{"mcpServers":{"bank/charge":{"concurrency":{"limit":1}}}}`:                                         {"/mcpServers/bank~1charge", "under bank"},
			`{"mcpServers":{"bank":{"tools":{"":{"concurrency":{"limit":1}}}}}}`:                                 {"/mcpServers/bank/tools/", "blank"},
			`{"mcpServers":{"bank":{"concurrency":{"limit":2},"tools":{"charge":{"concurrency":{"limit":9}}}}}}`: {"/mcpServers/bank/tools/charge/concurrency/limit", "reached first"},
		},
		"models": {
			`{"version":1,"asOf":"2026-01-31"}`:                                                                           {"", "no effect"},
			`{"version":1,"asOf":"2999-01-01","models":[{"provider":"house","model":"a"}]}`:                               {"/asOf", "future"},
			models(`"models":[{"provider":"house","model":"a","contextTokens":128}]`):                                     {"/models/0/contextTokens", "write 128000"},
			models(`"models":[{"provider":"house","model":"house/a"}]`):                                                   {"/models/0/model", "want a"},
			models(`"models":[{"provider":"opnai","model":"a"}]`):                                                         {"/models/0/provider", "did you mean openai?"},
			models(`"rules":[{"match":"llama*"}]`):                                                                        {"/rules/0", "says nothing"},
			models(`"rules":[{"match":"llama*","capabilities":["reasoning"]},{"match":"llama3*","lacks":["reasoning"]}]`): {"/rules/1/match", "move it up"},
		},
		"secrets-file": {
			"a: ${DB_PASSWORD}\n":                    {"", "not replaced"},
			"a: changeme\n":                          {"", "placeholder"},
			"a: password\n":                          {"", "common word"},
			"a: \" hunter2hunter2\"":                 {"", "around it"},
			"a: hunter2hunter2\nb: hunter2hunter2\n": {"", "line 1"},
		},
	} {
		k := kindOf(t, kind)
		for doc, want := range docs {
			require.NoError(t, k.Check([]byte(doc), settingsfile.Host{}), "%s: %s", kind, doc)
			found := k.Doubts([]byte(doc), settingsfile.Host{})
			require.Len(t, found, 1, "%s: %s: %v", kind, doc, found)
			require.Equal(t, want[0], found[0].Path, doc)
			require.Contains(t, found[0].Message, want[1], doc)
			require.NotContains(t, found[0].Message, "hunter2", doc)
			require.NotContains(t, found[0].Message, "0123456789", doc)
		}
	}
}

func TestDoubts_AcceptSoundFiles(t *testing.T) {
	t.Parallel()
	for kind, docs := range map[string][]string{
		"provider-settings": {
			`{"providers":{"house":{"baseUrl":"http://127.0.0.1:11434/v1","key":{"env":"HOUSE_KEY"},"headers":{"X-Team":"desk"},"query":{"version":"2"},"body":{"temperature":0,"guided_decoding":"x"}}}}`,
			`{"providers":{"az":{"api":"azure-openai","baseUrl":"https://x.openai.azure.com/openai/deployments/gpt","query":{"api-version":"2024-10-21"}}}}`,
			`{"providers":{"foundry":{"baseUrl":"https://x.services.ai.azure.com/models"},"openai":{"maxConcurrent":4,"timeouts":{"connectMs":500,"firstByteMs":30000,"callMs":600000},"maxTimeoutMs":3600000,"onError":{"models":["anthropic/claude-sonnet-5-5"]}}}}`,
		},
		"provider-policies": {`{"tenants":{"acme":{"openai":{"mode":"restricted","allowedModels":["gpt-5*","gpt-6.1-terra"]},"*":{"mode":"disabled"}}}}`},
		"tenant-limits":     {`{"tenants":{"acme":{"weight":2,"concurrency":{"limit":9}},"*":{"concurrency":{"limit":5},"rate":{"limit":10,"periodMs":60000}}}}`},
		"rate-limits":       {`{"limits":["tenant=600/m","tenant:start=100/m,burst=20","key=50/s"]}`},
		"tool-limits":       {`{"mcpServers":{"bank":{"concurrency":{"limit":9},"tools":{"charge":{"concurrency":{"limit":1}}}}}}`},
		"models":            {`{"version":1,"asOf":"2026-01-31","models":[{"provider":"house","model":"a","contextTokens":128000}],"rules":[{"match":"llama3*","lacks":["reasoning"]},{"match":"llama*","capabilities":["reasoning"]}]}`},
		"secrets-file":      {"a: hunter2hunter2\nb: hunter3hunter3\n"},
	} {
		k := kindOf(t, kind)
		for _, doc := range docs {
			require.NoError(t, k.Check([]byte(doc), settingsfile.Host{}), doc)
			require.Empty(t, k.Doubts([]byte(doc), settingsfile.Host{}), doc)
		}
	}
}

func TestCheck_RejectsAddressesOfSingleCallsAndHeadersTwice(t *testing.T) {
	t.Parallel()
	k := kindOf(t, "provider-settings")
	for _, path := range []string{"/v1/chat/completions", "/v1/chat/completions/", "/v1/responses", "/v1/models", "/v1/embeddings"} {
		err := k.Check([]byte(`{"providers":{"house":{"baseUrl":"http://127.0.0.1:11434`+path+`"}}}`), settingsfile.Host{})
		require.ErrorContains(t, err, "/providers/house/baseUrl", path)
		require.ErrorContains(t, err, "without "+strings.TrimPrefix(strings.TrimSuffix(path, "/"), "/v1"))
	}
	for _, with := range []string{`"headers":{"X-Team":"a","x-team":"b"}`, `"headers":{"x-team":"a"},"secretHeaders":{"X-Team":{"env":"T"}}`} {
		err := k.Check([]byte(`{"providers":{"house":{"baseUrl":"http://127.0.0.1:11434/v1",`+with+`}}}`), settingsfile.Host{})
		require.ErrorContains(t, err, "keep one of the two", with)
	}
}
