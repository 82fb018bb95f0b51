package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
)

// recorder keeps the last request of an adapter. Its answer is an error: only the request matters.
type recorder struct {
	path, query string
	header      http.Header
	body        map[string]json.RawMessage
	raw         string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	b, _ := io.ReadAll(req.Body)
	r.path, r.query, r.header, r.raw = req.URL.EscapedPath(), req.URL.RawQuery, req.Header, string(b)
	r.body = nil
	_ = json.Unmarshal(b, &r.body)
	w.WriteHeader(http.StatusTeapot)
}

// callWith calls a provider that the settings describe.
func callWith(t *testing.T, id, doc string, req provider.Request) {
	t.Helper()
	o := modelsOf()
	o.SettingsFile = modelsFile(t, doc)
	require.NoError(t, errors.Join(o.Validate()...))
	reg, err := o.Open(nil, func(f func()) { t.Cleanup(f) })
	require.NoError(t, err)
	p, ok := reg.Lookup(id)
	require.True(t, ok)
	req.Messages = []provider.Message{{Role: "user", Content: []byte(`"x"`)}}
	if req.Model == "" {
		req.Model = "m"
	}
	_, err = p.Call(t.Context(), req, nil)
	require.Error(t, err)
	require.NotContains(t, fmt.Sprint(err), "sk-secret")
}

// A provider that the settings describe needs no flag. What they add is in each request.
func TestServers_AreDescribedByTheSettings(t *testing.T) { //nolint:paralleltest // sets the environment
	noKeys(t)
	t.Setenv("MY_KEY", "sk-secret-0001")
	keyFile := filepath.Join(t.TempDir(), "gateway")
	require.NoError(t, os.WriteFile(keyFile, []byte("sk-secret-0002\n"), 0o600))
	var r recorder
	server := httptest.NewServer(&r)
	t.Cleanup(server.Close)
	schema := provider.Request{Schema: []byte(`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}}}`)}
	extras := fmt.Sprintf(`"baseUrl":%q,"key":{"env":"MY_KEY"},"headers":{"X-Team":"a b"},"secretHeaders":{"x-portkey-api-key":{"file":%q}},"query":{"v":"1 2"}`, server.URL+"/x", keyFile)

	t.Run("openai-chat", func(t *testing.T) { //nolint:paralleltest // one recorder
		callWith(t, "box", `{"providers":{"box":{`+extras+`,"reasoningEffort":"low","body":{"chat_template_kwargs":{"enable_thinking":false},"stream_options2":1}}}}`, schema)
		require.Equal(t, "/x/chat/completions", r.path)
		require.Equal(t, "v=1+2", r.query)
		require.Equal(t, "Bearer sk-secret-0001", r.header.Get("Authorization"))
		require.Equal(t, "a b", r.header.Get("X-Team"))
		require.Equal(t, "sk-secret-0002", r.header.Get("X-Portkey-Api-Key"))
		require.JSONEq(t, `{"enable_thinking":false}`, string(r.body["chat_template_kwargs"]))
		require.JSONEq(t, `"low"`, string(r.body["reasoning_effort"]))
		require.Contains(t, r.raw, `"b":{"type":"string"},"a":`, "the author's order of properties")
	})
	t.Run("azure-openai", func(t *testing.T) { //nolint:paralleltest // one recorder
		callWith(t, "azure", fmt.Sprintf(`{"providers":{"azure":{"api":"azure-openai","baseUrl":%q,"key":{"env":"MY_KEY"},"query":{"api-version":"2024-10-21"}}}}`, server.URL), provider.Request{Model: "m 1", Schema: schema.Schema})
		require.Equal(t, "/openai/deployments/m%201/chat/completions", r.path)
		require.Equal(t, "api-version=2024-10-21", r.query)
		require.Equal(t, "sk-secret-0001", r.header.Get("Api-Key"))
		require.Empty(t, r.header.Get("Authorization"))
		callWith(t, "azure", fmt.Sprintf(`{"providers":{"azure":{"api":"azure-openai","baseUrl":%q,"key":{"env":"MY_KEY"},"query":{"api-version":"2024-10-21"}}}}`, server.URL), provider.Request{Credential: "sk-of-a-tenant"})
		require.Equal(t, []string{"sk-of-a-tenant"}, r.header.Values("Api-Key"))
	})
	t.Run("anthropic", func(t *testing.T) { //nolint:paralleltest // one recorder
		callWith(t, "claude-proxy", `{"providers":{"claude-proxy":{"api":"anthropic",`+extras+`,"reasoningEffort":"low","promptCaching":"1h","body":{"metadata":{"user_id":"u"}}}}}`, schema)
		require.Equal(t, "/x/v1/messages", r.path)
		require.Equal(t, "sk-secret-0001", r.header.Get("X-Api-Key"))
		require.JSONEq(t, `{"type":"ephemeral","ttl":"1h"}`, string(r.body["cache_control"]))
		require.Contains(t, string(r.body["output_config"]), `"effort":"low"`)
		require.Contains(t, string(r.body["output_config"]), `"format"`, "merged with the adapter's")
		require.JSONEq(t, `{"user_id":"u"}`, string(r.body["metadata"]))
	})
	t.Run("openai-responses", func(t *testing.T) { //nolint:paralleltest // one recorder
		callWith(t, "box", `{"providers":{"box":{"api":"openai-responses",`+extras+`,"reasoningEffort":"low","body":{"text":{"verbosity":"low"}}}}}`, schema)
		require.Equal(t, "/x/responses", r.path)
		require.Equal(t, "Bearer sk-secret-0001", r.header.Get("Authorization"))
		require.JSONEq(t, `{"effort":"low"}`, string(r.body["reasoning"]))
		require.Contains(t, string(r.body["text"]), `"verbosity":"low"`)
		require.Contains(t, string(r.body["text"]), `"type":"json_schema"`, "merged with the adapter's")
		require.Contains(t, r.raw, `"b":{"type":"string"},"a":`, "the author's order of properties")
	})
	t.Run("bedrock", func(t *testing.T) { //nolint:paralleltest // one recorder
		callWith(t, "aws", fmt.Sprintf(`{"providers":{"aws":{"api":"bedrock","baseUrl":%q,"key":{"env":"MY_KEY"},"reasoningEffort":"low","aws":{"region":"eu-central-1"}}}}`, server.URL), schema)
		require.Equal(t, "/model/m/invoke-with-response-stream", r.path)
		require.Equal(t, "Bearer sk-secret-0001", r.header.Get("Authorization"))
		require.Contains(t, string(r.body["output_config"]), `"effort":"low"`)
		callWith(t, "aws", fmt.Sprintf(`{"providers":{"aws":{"api":"bedrock","baseUrl":%q,"aws":{"region":"eu-central-1","accessKeyId":{"env":"MY_KEY"},"secretAccessKey":{"env":"MY_KEY"}}}}}`, server.URL), schema)
		require.Contains(t, r.header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=sk-secret-0001/")
	})
	t.Run("gemini", func(t *testing.T) { //nolint:paralleltest // one recorder
		callWith(t, "g", `{"providers":{"g":{"api":"gemini",`+extras+`,"body":{"generationConfig":{"thinkingConfig":{"thinkingLevel":"low"}}}}}}`, schema)
		require.Equal(t, "sk-secret-0001", r.header.Get("X-Goog-Api-Key"))
		require.Equal(t, "a b", r.header.Get("X-Team"))
		require.Contains(t, string(r.body["generationConfig"]), `"thinkingLevel":"low"`)
		require.Contains(t, string(r.body["generationConfig"]), `"responseJsonSchema"`)
	})
}

// Keys and secret headers that the settings name are redacted like others.
func TestServers_TheirSecretsAreRedacted(t *testing.T) { //nolint:paralleltest // sets the environment
	noKeys(t)
	t.Setenv("MY_KEY", "sk-secret-0001")
	t.Setenv("MY_HEADER", "sk-secret-0002")
	o := Options{SecretsOnly: true, SettingsFile: modelsFile(t, `{"providers":{"box":{"baseUrl":"http://h/v1","key":{"env":"MY_KEY"},"secretHeaders":{"X-Gate":{"env":"MY_HEADER"}}}}}`)}
	require.NoError(t, o.CheckKeys())
	got := map[string]string{}
	for _, s := range o.Secrets() {
		got[s.ID] = s.Value.Reveal()
	}
	require.Equal(t, map[string]string{"provider-box": "sk-secret-0001", "provider-box-x-gate": "sk-secret-0002"}, got)

	t.Setenv("MY_KEY", `{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----\n"}`)
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", "sk-secret-0003")
	o = Options{SecretsOnly: true, SettingsFile: modelsFile(t, `{"providers":{
		"aws":{"api":"bedrock","aws":{"region":"eu-central-1","accessKeyId":{"env":"MY_HEADER"},"secretAccessKey":{"env":"MY_HEADER"},"sessionToken":{"env":"MY_HEADER"}}},
		"g":{"api":"vertex","key":{"env":"MY_KEY"}}}}`)}
	require.NoError(t, o.CheckKeys())
	got = map[string]string{}
	for _, s := range o.Secrets() {
		got[s.ID] = s.Value.Reveal()
	}
	require.Equal(t, "sk-secret-0002", got["provider-aws-secret-access-key"])
	require.Equal(t, "sk-secret-0002", got["provider-aws-session-token"])
	require.Equal(t, "sk-secret-0003", got["aws-bearer-token-bedrock"])
	require.Equal(t, "-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----\n", got["provider-g-private-key"])
}

// Models on a cloud are on no server of the operator.
func TestServers_OnACloudAreNotSelfHosted(t *testing.T) { //nolint:paralleltest // sets the environment
	noKeys(t)
	o := modelsOf()
	o.SettingsFile = modelsFile(t, `{"providers":{"aws":{"api":"bedrock","aws":{"region":"eu-central-1"}},"box":{"baseUrl":"http://h/v1"},"r":{"api":"openai-responses"}}}`)
	require.NoError(t, errors.Join(o.Validate()...))
	require.Equal(t, []string{"box"}, o.SelfHosted())
	require.Equal(t, []string{"aws", "box", "r"}, o.Keyed())
}

func TestServers_SayWhatIsWrong(t *testing.T) { //nolint:paralleltest // sets the environment
	noKeys(t)
	t.Setenv("MY_KEY", "sk-secret-0001")
	const azure = `"api":"azure-openai","baseUrl":"https://n.openai.azure.com`
	// environment are parts of the problems that depend on variables, files and flags.
	environment := []string{"missing: the address", "not set", "no such file", "Google's credentials", "/onError/models/0", "/providers/bax", "there are"}
	for doc, want := range map[string]string{
		`"box":{"baseURL":"http://h/v1"}`:                                                                                 `at "/providers/box/baseURL": unknown member; allowed here: api, aws, baseUrl`,
		`"box":{"baseURl":"http://h/v1"}`:                                                                                 `did you mean baseUrl?`,
		`"box":{"baseUrl":"http://h/v1","key":"sk-secret-0001"}`:                                                          `at "/providers/box/key": `,
		`"box":{"baseUrl":"http://h/v1","key":{}}`:                                                                        `at "/providers/box/key": want {"env": NAME} or {"file": PATH}`,
		`"box":{"baseUrl":"http://h/v1","key":{"env":"A","file":"b"}}`:                                                    `at "/providers/box/key": want {"env": NAME} or {"file": PATH}`,
		`"box":{"baseUrl":"http://h/v1","key":{"env":"UNSET_KEY"}}`:                                                       `at "/providers/box/key": UNSET_KEY is empty or not set`,
		`"box":{"baseUrl":"http://h/v1","key":{"file":"/none"}}`:                                                          `at "/providers/box/key": /none: no such file`,
		`"box":{"baseUrl":"h/v1"}`:                                                                                        `at "/providers/box/baseUrl": "h/v1": want http(s)://host[:port]/path, such as`,
		`"box":{"api":"openai-chat"}`:                                                                                     `at "/providers/box/baseUrl": missing: the address`,
		`"box":{"api":"cohere","baseUrl":"http://h"}`:                                                                     `at "/providers/box/api": "cohere": want one of openai-chat, openai-responses, anthropic, gemini, azure-openai, bedrock, vertex`,
		`"box":{"api":"openai","baseUrl":"http://h"}`:                                                                     `at "/providers/box/api": "openai": did you mean openai-chat? want one of openai-chat`,
		`"box":{"api":"Bedrok","baseUrl":"http://h"}`:                                                                     `at "/providers/box/api": "Bedrok": did you mean bedrock? want one of`,
		`"az":{"api":"azure-openai","baseUrl":"http://h","query":{"api-version":"latst"}}`:                                `at "/providers/az/query/api-version": want a date such as 2024-10-21`,
		`"openai":{"api":"vertex"}`:                                                                                       `the provider openai has the interface openai-chat; give this server another id`,
		`"box":{"baseUrl":"http://h/v1","aws":{"region":"eu-central-1"}}`:                                                 `at "/providers/box/aws": only the interface bedrock has it`,
		`"box":{"baseUrl":"http://h/v1","google":{"project":"p"}}`:                                                        `at "/providers/box/google": only the interface vertex has it`,
		`"box":{"api":"bedrock","aws":{"accessKeyId":{"env":"MY_KEY"}}}`:                                                  `at "/providers/box/aws": want accessKeyId and secretAccessKey together`,
		`"box":{"api":"bedrock","aws":{"sessionToken":{"env":"MY_KEY"}}}`:                                                 `at "/providers/box/aws": want accessKeyId and secretAccessKey together`,
		`"box":{"api":"bedrock","aws":{"secretAccessKey":{}}}`:                                                            `at "/providers/box/aws/secretAccessKey": want {"env": NAME} or {"file": PATH}`,
		`"box":{"api":"bedrock","aws":{"accessKeyId":{"env":"MY_KEY"},"secretAccessKey":{"env":"UNSET_KEY"}}}`:            `at "/providers/box/aws/secretAccessKey": UNSET_KEY is empty or not set`,
		`"box":{"api":"bedrock","aws":{"profile":"p","accessKeyId":{"env":"MY_KEY"},"secretAccessKey":{"env":"MY_KEY"}}}`: `at "/providers/box/aws/profile": has credentials, and so does accessKeyId`,
		`"box":{"api":"bedrock","key":{"env":"MY_KEY"},"aws":{"profile":"p"}}`:                                            `at "/providers/box/key": has credentials, and so does aws`,
		`"box":{"api":"bedrock","key":{"env":"MY_KEY"},"aws":{"region":"EU"}}`:                                            `at "/providers/box/aws/region": "EU": want a region`,
		`"box":{"api":"vertex","key":{"env":"MY_KEY"}}`:                                                                   `at "/providers/box/key": want Google's credentials`,
		`"box":{"api":"bedrock","body":{"anthropic_version":"x"}}`:                                                        `at "/providers/box/body/anthropic_version": the host sets it for each call`,
		`"box":{"api":"openai-responses","body":{"input":[]}}`:                                                            `at "/providers/box/body/input": the host sets it for each call`,
		`"box":{"api":"vertex","reasoningEffort":"low"}`:                                                                  `at "/providers/box/reasoningEffort": the interface vertex has none`,
		`"anthropic":{"api":"gemini","key":{"env":"MY_KEY"}}`:                                                             `the provider anthropic has the interface anthropic; give this server another id`,
		`"box":{` + azure + `"}`:                                                                                          `at "/providers/box/query": missing: api-version`,
		`"box":{"baseUrl":"http://h/v1","headers":{"Authorization":"x"}}`:                                                 `at "/providers/box/headers/Authorization": carries the key of a call`,
		`"box":{"baseUrl":"http://h/v1","headers":{"x-API-key":"x"}}`:                                                     `carries the key of a call`,
		`"box":{"baseUrl":"http://h/v1","headers":{"a b":"x"}}`:                                                           `at "/providers/box/headers/a b": no name of a header`,
		`"box":{"baseUrl":"http://h/v1","headers":{"x":"a\r\nb: c"}}`:                                                     `at "/providers/box/headers/x": has a line end`,
		`"box":{"baseUrl":"http://h/v1","headers":{"content-length":"1"}}`:                                                `the host sets it for each call`,
		`"box":{"baseUrl":"http://h/v1","body":{"messages":[]}}`:                                                          `at "/providers/box/body/messages": the host sets it for each call`,
		`"box":{"baseUrl":"http://h/v1","reasoningEffort":"lots"}`:                                                        `at "/providers/box/reasoningEffort": "lots": want one of none`,
		`"gemini":{"key":{"env":"MY_KEY"},"reasoningEffort":"low"}`:                                                       `at "/providers/gemini/reasoningEffort": the interface gemini has none`,
		`"box":{"baseUrl":"http://h/v1","promptCaching":"5m"}`:                                                            `at "/providers/box/promptCaching": only the interface anthropic`,
		`"anthropic":{"key":{"env":"MY_KEY"},"promptCaching":"9m"}`:                                                       `at "/providers/anthropic/promptCaching": "9m": want 5m or 1h`,
		`"box":{"baseUrl":"http://h/v1","retries":101}`:                                                                   `at "/providers/box/retries": 101: want 0 to 100`,
		`"box":{"baseUrl":"http://h/v1","onError":{"models":["sample/sample-9"]}}`:                                        `at "/providers/box/onError/models/0": the sample provider has no such model; did you mean sample/sample-1?`,
		`"box":{"baseUrl":"http://h/v1","onError":{"models":["ghost/m"]}}`:                                                `at "/providers/box/onError/models/0": no such provider`,
		`"*":{"baseUrl":"http://h/v1"}`:                                                                                   `at "/providers/*": a server is described in the entry of its provider`,
		`"Box":{"maxConcurrent":1}`:                                                                                       `at "/providers/Box": did you mean box? want lower-case letters, digits and dashes`,
		`"Box":{"baseUrl":"http://h/v1"}`:                                                                                 `at "/providers/Box": did you mean box? want lower-case letters, digits and dashes`,
		`"box":{"baseUrl":"ftp://h/v1"}`:                                                                                  `at "/providers/box/baseUrl": "ftp://h/v1": want http(s)`,
		`"box":{"baseUrl":"http://me:sk-secret-0001@h/v1"}`:                                                               `at "/providers/box/baseUrl": "http://[REDACTED]@h/v1": must not hold a user`,
		`"box":{"baseUrl":"http://h/v1?key=sk-secret-0001"}`:                                                              `at "/providers/box/baseUrl": "http://h/v1": must not have a query`,
		`"box":{"baseUrl":"http://h/v1","key":{"env":"sk-secret-0001"}}`:                                                  `at "/providers/box/key/env": want the name of an environment variable`,
		`"anthropic":{"baseUrl":"https://api.anthropic.com/v1"}`:                                                          `at "/providers/anthropic/baseUrl": "https://api.anthropic.com/v1": must not end in /v1`,
		`"box":{"api":"gemini","baseUrl":"https://h/v1beta"}`:                                                             `at "/providers/box/baseUrl": "https://h/v1beta": must not end in /v1beta`,
		`"box":{` + azure + `/openai","query":{"api-version":"1"}}`:                                                       `at "/providers/box/baseUrl": "https://n.openai.azure.com/openai": must not end in /openai`,
		`"box":{"api":"bedrock","baseUrl":"https://h/v1","aws":{"region":"eu-central-1"}}`:                                `at "/providers/box/baseUrl": "https://h/v1": must not have a path`,
		`"box":{"api":"vertex","google":{"project":"A B"}}`:                                                               `at "/providers/box/google/project": "A B": want the id of a project`,
		`"box":{"api":"vertex","google":{"project":"p","location":"E U"}}`:                                                `at "/providers/box/google/location": "E U": want global`,
		`"sample":{"baseUrl":"http://h/v1"}`:                                                                              `at "/providers/sample": is the host's own provider`,
		`"opnai":{"maxConcurrent":1}`:                                                                                     `at "/providers/opnai": no such provider; did you mean openai? there are sample, `,
		`"bax":{"maxConcurrent":1}`:                                                                                       `at "/providers/bax": no such provider`,
	} {
		o := modelsOf()
		o.SettingsFile = modelsFile(t, `{"providers":{`+doc+`}}`)
		err := errors.Join(o.Validate()...)
		if err == nil {
			_, err = o.Open(nil, func(func()) {})
		}
		require.ErrorContains(t, err, want, doc)
		require.ErrorContains(t, err, "--provider-settings "+o.SettingsFile+":\n", doc)
		require.ErrorContains(t, err, "line 1, ", doc)
		require.NotContains(t, err.Error(), "--provider:", doc)
		if !slices.ContainsFunc(environment, func(part string) bool { return strings.Contains(want, part) }) {
			_, err := ParseSettings([]byte(`{"providers":{`+doc+`}}`), &settings.Names{Known: []string{"box"}, Open: true})
			require.ErrorContains(t, err, want, "without the environment: %s", doc)
		}
		require.NotContains(t, strings.ReplaceAll(err.Error(), "/none", ""), "sk-secret-0001", doc)
	}
	o := modelsOf("box=http://h/v1")
	o.SettingsFile = modelsFile(t, `{"providers":{"box":{"baseUrl":"http://other/v1"}}}`)
	require.ErrorContains(t, errors.Join(o.Validate()...), `at "/providers/box/baseUrl": --provider gives box an address, too; keep one of the two`)
}

func TestDocs_DescribeValidServers(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "providers.md"))
	require.NoError(t, err)
	_, doc, found := strings.Cut(string(b), "```json\n")
	require.True(t, found)
	doc, _, _ = strings.Cut(doc, "```")
	all, err := limit.Parse([]byte(doc), limit.Host{Providers: &settings.Names{Known: []string{"house", "azure", "anthropic"}}})
	require.NoError(t, err)
	require.Equal(t, []string{"anthropic", "azure", "house"}, all.Servers())
	require.Equal(t, limit.AzureOpenAI, all.For("azure").APIOf("azure"))
	require.Equal(t, int64(2), all.For("anthropic").Retries)

	_, doc, found = strings.Cut(string(b), "## Models on a cloud\n\n```json\n")
	require.True(t, found)
	doc, _, _ = strings.Cut(doc, "```")
	all, err = limit.Parse([]byte(doc), limit.Host{})
	require.NoError(t, err)
	require.Equal(t, limit.Bedrock, all.For("bedrock").APIOf("bedrock"))
	require.Equal(t, "europe-west4", all.For("vertex").Google.Location)
}
