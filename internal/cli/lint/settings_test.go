package lint

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/cli/editorschema"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/host/settingsfile"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// The published schemas and the host agree about files.
func TestSettings_SchemasAgreeWithTheHost(t *testing.T) {
	t.Parallel()
	all, err := editorschema.All()
	require.NoError(t, err)
	for kind, docs := range map[string]map[string]bool{
		"tenant-limits": {
			`{"tenants":{}}`: true,
			`{"$schema":"x","tenants":{"acme":{"weight":2,"priority":-10,"concurrency":{"limit":5},"rate":{"limit":3,"periodMs":1000}},"*":{}}}`: true,
			`{}`:                                    false,
			`{"tenant":{}}`:                         false,
			`{"tenants":{"a":{"wieght":2}}}`:        false,
			`{"tenants":{"a":{"retention":"90d"}}}`: true,
			`{"tenants":{"a":{"retention":"unlimited"}}}`:               true,
			`{"tenants":{"a":{"retention":"90"}}}`:                      false,
			`{"tenants":{"a":{"retention":90}}}`:                        false,
			`{"tenants":{"a":{"weight":0}}}`:                            false,
			`{"tenants":{"a":{"weight":1001}}}`:                         false,
			`{"tenants":{"a":{"priority":11}}}`:                         false,
			`{"tenants":{"a":{"priority":"1"}}}`:                        false,
			`{"tenants":{"a b":{}}}`:                                    false,
			`{"tenants":{"a":{"concurrency":{}}}}`:                      false,
			`{"tenants":{"a":{"concurrency":{"limit":10001}}}}`:         false,
			`{"tenants":{"a":{"rate":{"limit":1}}}}`:                    false,
			`{"tenants":{"a":{"rate":{"limit":1,"periodMs":999}}}}`:     false,
			`{"tenants":{"a":{"rate":{"limit":1001,"periodMs":1000}}}}`: false,
			`[]`: false,
		},
		"tool-limits": {
			`{"mcpServers":{"*":{"concurrency":{"limit":1}}}}`:                                                                  true,
			`{"a2aAgents":{"a":{"rate":{"key":"tenant","limit":1,"periodMs":1000}}}}`:                                           true,
			`{"$schema":"x","mcpServers":{"s":{"priority":3,"tools":{"t":{"concurrency":{"key":"arguments.a.b","limit":1}}}}}}`: true,
			`{}`:                                false,
			`{"mcpServers":{}}`:                 false,
			`{"mcpServers":{"*":{"tools":{}}}}`: false,
			`{"mcpServers":{"s":{"concurency":{"limit":1}}}}`:                                                      false,
			`{"mcpServers":{"s":{"concurrency":{"key":"arguments.a","limit":1}}}}`:                                 false,
			`{"mcpServers":{"s":{"tools":{"t":{"concurrency":{"key":"argument.a","limit":1}}}}}}`:                  false,
			`{"mcpServers":{"s":{"tools":{"t":{"concurrency":{"key":"arguments.1.2.3.4.5.6.7.8.9","limit":1}}}}}}`: false,
			`{"mcpServers":{"s":{"tools":{"t":{"concurrency":{"key":"arguments.1.2.3.4.5.6.7.8","limit":1}}}}}}`:   true,
			`{"a2aAgents":{"a":{"tools":{}}}}`:                                                                     false,
			`{"a2aAgents":{"a":{"rate":{"limit":1}}}}`:                                                             false,
		},
		"rate-limits": {
			`{}`: true,
			`{"$schema":"x","limits":["key=50/s","tenant:start=600/m,burst=20"],"tenants":{"acme":["key:read=1000000/d"]}}`: true,
			`{"limit":[]}`:                       false,
			`{"limits":["key=0/s"]}`:             false,
			`{"limits":["key=1000001/s"]}`:       false,
			`{"limits":["host=1/s"]}`:            false,
			`{"limits":["key:all=1/s"]}`:         false,
			`{"limits":["key=1/w"]}`:             false,
			`{"limits":["key=1/s,burst=0"]}`:     false,
			`{"limits":[1]}`:                     false,
			`{"tenants":{"*":["key=1/s"]}}`:      false,
			`{"tenants":{"acme":{"key":"1/s"}}}`: false,
		},
		"config": {
			`{}`: true,
			`{"http-addr":"127.0.0.1:8080","api-key":["a=b:*","c=d:*"],"max-runs":5,"lease":"10s","workflows":"flows","test-seams":true}`: true,
			`{"max-runs":"5","test-seams":"true","lease":"1m30s"}`:                                                                        true,
			`{"http-adr":"x"}`:             false,
			`{"config":"other.yaml"}`:      false,
			`{"max-runs":"many"}`:          false,
			`{"test-seams":"yes, please"}`: false,
			`{"lease":"10 seconds"}`:       false,
			`{"lease":{"s":10}}`:           false,
			`[]`:                           false,
		},
		"secrets-file": {
			`{"pay-key":"sk-0123456789"}`: true,
			`{"a[b":"sk-0123456789"}`:     false,
			`{"":"sk-0123456789"}`:        false,
			`{"pay":{"key":"sk-0123"}}`:   false,
			`["a"]`:                       false,
		},
		"models": {
			`{"$schema":"x","version":1,"asOf":"2026-01-31"}`: true,
			`{"version":1,"asOf":"2026-01-31","model":[]}`:    false,
		},
		"provider-policies": {
			`{"$schema":"x","tenants":{"*":{"openai":{"mode":"disabled"}}}}`: true,
			`{"tenants":{"*":{"openai":{"mode":"of"}}}}`:                     false,
			`{"tenants":{"*":{"openai":{"mod":"disabled"}}}}`:                false,
		},
		"provider-settings": {
			`{"$schema":"x","providers":{"a":{"maxConcurrent":3}}}`: true,
			`{"providers":{"a":{"maxConcurent":3}}}`:                false,
		},
	} {
		s, err := schema.Compile(kind, all[kind+".schema.json"])
		require.NoError(t, err)
		k, err := settingsKindOf("x", kind, nil)
		require.NoError(t, err)
		for doc, valid := range docs {
			err := k.Check([]byte(doc), settingsfile.Host{})
			require.Equal(t, valid, err == nil, "%s: %s: %v", kind, doc, err)
			require.Equal(t, valid, len(s.Validate([]byte(doc))) == 0, "%s: schema: %s", kind, doc)
		}
	}
	require.Len(t, settingsNames(), 8)
}

// All mistakes of a file are found, each with its path, and a close name for an unknown member.
func TestSettings_ListAllMistakesOfAFile(t *testing.T) {
	t.Parallel()
	for kind, tc := range map[string]struct {
		doc  string
		want []string
	}{
		"tenant-limits": {
			`{"tenants":{"a":{"wieght":1,"priority":99},"b c":{}}}`,
			[]string{`line 1, at "/tenants/a/wieght": unknown member; allowed here: concurrency, priority, rate, retention, weight; did you mean weight?`, `"/tenants/a/priority": 99`, `"/tenants/b c"`},
		},
		"tool-limits": {`{"mcpServers":{"s":{"prority":1,"rate":{"limit":0,"periodMs":1}}}}`, []string{"did you mean priority?", "/mcpServers/s/rate/limit", "/mcpServers/s/rate/periodMs"}},
		"rate-limits": {
			"{\"limts\":[],\n\"limits\":[\"key=1/s\",\"key=2/s\",\"no\"],\n\"tenants\":{\"a\":[\"x\"],\"*\":[]}}",
			[]string{"limits is set, too: remove one of the two", `line 2, at "/limits/1"`, `line 2, at "/limits/2"`, `line 3, at "/tenants/a/0"`, `line 3, at "/tenants/*"`},
		},
		"models":            {`{"version":1,"asOf":"x","modls":[],"rules":[{}]}`, []string{"/asOf", "did you mean models?", "/rules/0"}},
		"provider-policies": {`{"tenants":{"a":{"openai":{"modee":"x"}},"b":{"x":{"mode":"of"}}}}`, []string{"did you mean mode?", "/tenants/b/x/mode"}},
		"provider-settings": {`{"providers":{"a":{"retrys":1,"maxConcurrent":-1}}}`, []string{"did you mean retries?", "/providers/a/maxConcurrent"}},
	} {
		k, err := settingsKindOf(kind+".json", "", []byte(tc.doc))
		require.NoError(t, err)
		require.Equal(t, kind, k.Name)
		err = k.Check([]byte(tc.doc), settingsfile.Host{})
		found, ok := errors.AsType[strictjson.Problems](err)
		require.True(t, ok, "%s: %v", kind, err)
		require.GreaterOrEqual(t, len(found), len(tc.want), kind)
		for _, want := range tc.want {
			require.ErrorContains(t, err, want, kind)
		}
		require.Len(t, settingsFindings(err), len(found))
	}
}

// settingsLint runs `waybill settings lint`, and returns the report and the notices.
func settingsLint(t *testing.T, stdin string, args ...string) (stdout, notices string, err error) {
	t.Helper()
	c := Settings(session.New())
	var out, errs bytes.Buffer
	c.SetIn(strings.NewReader(stdin))
	c.SetOut(&out)
	c.SetErr(&errs)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(append([]string{"lint"}, args...))
	err = c.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// A pattern of allowed models that matches none denies what its author wants to allow.
func TestSettings_CheckPatternsOfModels(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"provider-policies.json": `{"tenants":{"*":{"openai":{"mode":"restricted","allowedModels":["gpt-5*","gtp-5*","new-1"]}}}}`,
		"models.json":            `{"version":1,"asOf":"2026-01-01","models":[{"provider":"openai","model":"new-1"}]}`,
	})
	policies, models := filepath.Join(dir, "provider-policies.json"), filepath.Join(dir, "models.json")
	out, _, err := settingsLint(t, "", policies)
	require.NoError(t, err)
	require.Contains(t, out, "provider-policies.json:1:74: /tenants/*/openai/allowedModels/1: warning: settings: no known model matches")
	require.Contains(t, out, "/allowedModels/2: warning")
	require.NotContains(t, out, "/allowedModels/0")

	out, _, err = settingsLint(t, "", policies, models)
	require.NoError(t, err)
	require.NotContains(t, out, "/allowedModels/2", "the other file has it")
}

// A rule or a limit of a provider that the host does not have has no effect.
func TestSettings_CheckNamesOfTheHost(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"provider-policies.json": `{"tenants":{"*":{"opnai":{"mode":"disabled"},"house":{"mode":"disabled"},"openai":{"mode":"disabled"}},"a b":{}}}`,
		"provider-settings.json": `{"providers":{"house":{"baseUrl":"http://h/v1"},"gemni":{"maxConcurrent":1},"lab":{"api":"openai-chat"}}}`,
		"tool-limits.json":       `{"mcpServers":{"bnk":{"priority":1}}}`,
	})
	policies, providers, tools := filepath.Join(dir, "provider-policies.json"), filepath.Join(dir, "provider-settings.json"), filepath.Join(dir, "tool-limits.json")
	out, notices, err := settingsLint(t, "", policies)
	require.ErrorIs(t, err, errFindings)
	require.Equal(t, policies+": checked as provider-policies\n", notices)
	require.Contains(t, out, "/tenants/*/opnai: settings: no known provider has this id; did you mean openai?")
	require.Contains(t, out, "/tenants/*/house: warning: settings: no known provider has this id; * is all others; --provider ID if the host has it")
	require.Contains(t, out, "/tenants/a b: settings: want the name of a tenant or *")
	require.NotContains(t, out, "/openai")

	out, _, err = settingsLint(t, "", policies, providers)
	require.ErrorIs(t, err, errFindings)
	require.NotContains(t, out, "/tenants/*/house", "the other file has it")
	require.Contains(t, out, "/providers/gemni: settings: no known provider has this id; did you mean gemini?")
	require.Contains(t, out, "/providers/lab/baseUrl: warning: settings: missing: the address of the server, unless the host has --provider lab=URL")

	out, _, err = settingsLint(t, "", "--provider", "lab=http://h", policies)
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, "/tenants/*/house: settings: no such provider; there are ")

	_, _, err = settingsLint(t, "", tools)
	require.NoError(t, err)
	out, _, err = settingsLint(t, "", "--mcp-server", "bank=http://h", tools)
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, "/mcpServers/bnk: settings: no such MCP server; did you mean bank? there are bank; * is all others (--mcp-server)")
}

// The files of --config and --secrets-file are YAML.
func TestSettings_ReadYAML(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"config.yaml":       "http-addr: 127.0.0.1:1\n\n# a comment\nmax-rusn: 4\nlease: soon\napi-key: [sk-secret-1=a:*, {x: sk-secret-2}]\n",
		"secrets-file.yaml": "good: sk-0123456789\n\nshort-sk-1: x\n",
	})
	out, _, err := settingsLint(t, "", filepath.Join(dir, "config.yaml"))
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, "config.yaml:4:1: /max-rusn: settings: keys are the flags' names; did you mean max-runs?")
	require.Contains(t, out, "config.yaml:5:1: /lease: settings: --lease: want a duration in h, m, s or ms, such as 24h")
	require.Contains(t, out, "config.yaml:6:1: /api-key: settings: want a list of plain values")
	require.NotContains(t, out, "sk-secret")
	out, _, err = settingsLint(t, "", filepath.Join(dir, "secrets-file.yaml"))
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, "secrets-file.yaml:3:1: (root): settings: secret is shorter than")
	require.NotContains(t, out, "sk-")
}

func TestSettings_KindOfAFile(t *testing.T) {
	t.Parallel()
	k, err := settingsKindOf("my.json", "", []byte(`{"$schema":"https://waybill.dev/schemas/tool-limits.schema.json"}`))
	require.NoError(t, err)
	require.Equal(t, "tool-limits", k.Name)
	k, err = settingsKindOf("providers.json", "", []byte(`{"providers":{}}`))
	require.NoError(t, err)
	require.Equal(t, "provider-settings", k.Name, "the only kind with these members")
	_, err = settingsKindOf("tenants.json", "", []byte(`{"tenants":{}}`))
	require.ErrorContains(t, err, "tenants.json: its kind is unknown; set --kind to ")
	for _, flag := range []string{"--kind", "--as"} {
		_, notices, err := settingsLint(t, `{"tenants":{}}`, flag, "tenant-limits", "-")
		require.NoError(t, err)
		require.Empty(t, notices)
		_, _, err = settingsLint(t, "{}", flag, "tenants", "-")
		require.ErrorContains(t, err, `--kind "tenants": want config, models, provider-policies, provider-settings, rate-limits, secrets-file, tenant-limits, tool-limits`)
	}
	_, err = settingsKindOf("my.json", "", []byte(`{`))
	require.ErrorContains(t, err, "my.json: its kind is unknown; set --kind to config, ")
	_, err = os.Stat(filepath.Join("..", "..", "..", "schemas", "tool-limits.schema.json"))
	require.NoError(t, err, "it is in the repository")
}
