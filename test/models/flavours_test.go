package models

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/bedrock"
	"waybill.dev/waybill/test/double/vertex"
	"waybill.dev/waybill/test/harness"
)

// flavour is an API of a provider's settings, with a double that enforces its rules.
type flavour struct {
	// id is the provider, model the model that nodes name.
	id, model string
	// entry is the provider's entry in the settings.
	entry string
	desk  *desk
	// counted means that the double counts thoughts.
	counted bool
}

// flavourHost is a host with all flavours.
type flavourHost struct {
	*harness.Host
	flavours []flavour
}

// startFlavours starts the doubles and a host that calls them.
func startFlavours(t *testing.T) flavourHost {
	t.Helper()
	var (
		list []flavour
		env  = []string{"FLAVOUR_KEY=" + flavourKey}
	)
	add := func(f flavour) { list = append(list, f) }
	for _, v := range []*vendor{openAnthropic(), openGemini()} {
		t.Cleanup(v.close)
		env = append(env, "KEY_OF_"+strings.ToUpper(v.id)+"="+v.key)
		add(flavour{
			id: "my-" + v.id, model: v.seeing, desk: v.desk, counted: true,
			entry: fmt.Sprintf(`{"api":%q,"baseUrl":%q,"key":{"env":"KEY_OF_%s"}}`, v.id, v.url, strings.ToUpper(v.id)),
		})
	}
	add(openResponses(t))
	add(openAzure(t))
	amazon, google := openBedrock(t), openVertex(t)
	env = append(env, "BEDROCK_ID="+bedrock.KeyID, "BEDROCK_SECRET="+bedrock.SecretKey, "BEDROCK_SESSION="+bedrock.Session,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/nonexistent", "AWS_SHARED_CREDENTIALS_FILE=/nonexistent")
	add(amazon)
	list = append(list, google...)

	var entries []string
	for _, f := range list {
		if !slices.ContainsFunc(entries, func(e string) bool { return strings.HasPrefix(e, fmt.Sprintf("%q:", f.id)) }) {
			entries = append(entries, fmt.Sprintf("%q:%s", f.id, f.entry))
		}
	}
	file := filepath.Join(t.TempDir(), "providers.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"providers":{`+strings.Join(entries, ",")+`}}`), 0o600))
	h := harness.StartWith(t, harness.Options{
		Args: []string{"--provider-settings", file, "--kinds", filepath.Join(hostDir, "kinds"), "--durability", "process"},
		Env:  env,
	})
	return flavourHost{h, list}
}

// flavourKey is the key of the doubles of this file.
const flavourKey = "hk_live_77d0c41e9a6b2f35"

// Each API of the settings is called as its vendor wants it: schemas are enforced, refusals are final, a
// rate limit waits as long as the vendor says, and a broken stream is repeated.
func TestFlavours_WorkThroughAHost(t *testing.T) {
	needsHost(t)
	checked(t, &harness.Client{}) // load the schemas before the parallel tests
	h := startFlavours(t)
	c := checked(t, h.Client("dev-key"))
	var flows []string
	for name, s := range shapes {
		config := fmt.Sprintf(`{"prompt":%q,"maxTokens":%d,%s}`, question, budget, s.config)
		flows = append(flows, workflow("flavour-"+name, node("ask", s.typ, config, "{}")))
	}
	require.NoError(t, h.Deploy(flows, "dev-key"))
	right := answer{text: good, in: 31, out: 12, thoughts: 5}
	for _, f := range h.flavours {
		for name, tc := range map[string]struct {
			answers []answer
			events  []string
			code    string
			waits   time.Duration
		}{
			"answer":   {answers: []answer{right}, events: []string{usage, completed}},
			"wrong":    {answers: []answer{{text: wrong, in: 30, out: 9}, right}, events: []string{usage, retry, usage, completed}},
			"refusal":  {answers: []answer{{stop: refused, in: 30, out: 1}}, events: []string{usage, refusal, failed}, code: "envelope_refusal"},
			"limited":  {answers: []answer{{status: http.StatusTooManyRequests, retryAfter: "1"}, right}, events: []string{again, started, usage, completed}, waits: time.Second},
			"cut":      {answers: []answer{{text: good, end: broken}, right}, events: []string{again, started, usage, completed}},
			"failed":   {answers: []answer{{status: http.StatusInternalServerError}, {status: http.StatusInternalServerError}}, events: []string{again, started, failed}, code: "provider_unavailable"},
			"too long": {answers: []answer{{status: http.StatusRequestEntityTooLarge}}, events: []string{failed}, code: "content_too_long"},
		} {
			for _, shape := range []string{"value", "envelope"} {
				t.Run(f.id+"/"+f.model+"/"+name+"/"+shape, func(t *testing.T) {
					t.Parallel()
					id := unsafeInName.ReplaceAllString(f.id+f.model+name+shape, "-")
					f.desk.put(id, tc.answers...)
					began := time.Now()
					run := start(t, c, fmt.Sprintf(`{"workflowId":"flavour-%s","inputs":{"case":%q},"configurable":{"ai.provider":%q,"ai.model":%q}}`, shape, id, f.id, f.model))
					events := finish(t, c, run)
					require.GreaterOrEqual(t, time.Since(began), tc.waits)
					got := slices.DeleteFunc(typesBut(events, chunk), func(typ string) bool {
						return typ == artifact || typ == logged || strings.HasPrefix(typ, "run.")
					})
					require.Equal(t, append([]string{started}, tc.events...), got, "%s", dump(events))
					require.Len(t, f.desk.of(id), len(tc.answers), "number of calls")
					checkFlavourUsage(t, f, tc.answers, events)
					if tc.code == "" {
						require.Contains(t, string(of(events, completed)[0].Payload), `"answer":42`)
						return
					}
					requireHas(t, `{"error":{"code":"`+tc.code+`"}}`, of(events, failed)[0].Payload)
				})
			}
		}
	}
}

// checkFlavourUsage expects the vendor's counts, and the tokens of thoughts before them.
func checkFlavourUsage(t *testing.T, f flavour, answers []answer, events []harness.Event) {
	t.Helper()
	var want, got []string
	for _, a := range answers {
		if a.status != 0 || a.end != whole {
			continue
		}
		if a.stop == refused && !f.counted { // a filter counts nothing
			want = append(want, "0/0")
			continue
		}
		line := fmt.Sprintf("%d/%d", a.in, a.out)
		if a.thoughts > 0 {
			line += fmt.Sprintf(" thoughts %d", a.thoughts)
		}
		want = append(want, line)
	}
	thoughts := 0
	for _, e := range events {
		var p struct {
			InputTokens, OutputTokens int
			Fields                    struct{ ReasoningTokens int }
		}
		require.NoError(t, json.Unmarshal(e.Payload, &p))
		switch e.Type {
		case logged:
			thoughts = p.Fields.ReasoningTokens
		case usage:
			line := fmt.Sprintf("%d/%d", p.InputTokens, p.OutputTokens)
			if thoughts > 0 {
				line += fmt.Sprintf(" thoughts %d", thoughts)
			}
			got, thoughts = append(got, line), 0
		}
	}
	require.Equal(t, want, got, "%s", dump(events))
}

// openBedrock starts a double of Amazon Bedrock.
func openBedrock(t *testing.T) flavour {
	t.Helper()
	d := newDesk()
	s := bedrock.New(func(r bedrock.Request) bedrock.Reply {
		a := d.answer(r.Header, r.Body)
		if problem := wantsClaudeSchema(r.Body); problem != "" {
			return bedrock.Reply{Status: http.StatusBadRequest, Kind: "ValidationException", Label: "application/json", Body: fmt.Appendf(nil, `{"message":%q}`, problem)}
		}
		body := bedrock.Chunks(claudeEvents(a)...)
		switch {
		case a.status == http.StatusTooManyRequests:
			return bedrock.Reply{
				Status: a.status, Kind: "ThrottlingException", Label: "application/json", Body: []byte(`{"message":"Too many requests"}`),
				Header: map[string]string{"Retry-After": a.retryAfter},
			}
		case a.status == http.StatusRequestEntityTooLarge:
			return bedrock.Reply{Status: http.StatusBadRequest, Kind: "ValidationException", Label: "application/json", Body: []byte(`{"message":"Input is too long for requested model."}`)}
		case a.status != 0:
			return bedrock.Reply{Status: a.status, Kind: "InternalServerException", Label: "application/json", Body: []byte(`{"message":"boom"}`)}
		case a.end == broken:
			return bedrock.Reply{Body: body[:len(body)/2], Cut: true}
		}
		return bedrock.Reply{Body: body}
	})
	t.Cleanup(s.Close)
	return flavour{
		id: "amazon", model: "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", desk: d, counted: true,
		entry: fmt.Sprintf(`{"api":"bedrock","baseUrl":%q,"aws":{"region":%q,"accessKeyId":{"env":"BEDROCK_ID"},
			"secretAccessKey":{"env":"BEDROCK_SECRET"},"sessionToken":{"env":"BEDROCK_SESSION"}}}`, s.URL, bedrock.Region),
	}
}

// openVertex starts a double of Vertex AI, with models of both vendors.
func openVertex(t *testing.T) []flavour {
	t.Helper()
	d := newDesk()
	s := vertex.New(vertex.Options{Answer: func(r vertex.Request) vertex.Reply {
		a := d.answer(r.Header, r.Body)
		claude := strings.Contains(r.Path, "/anthropic/")
		problem := ""
		if claude {
			problem = wantsClaudeSchema(r.Body)
		} else if !strings.Contains(string(r.Members["generationConfig"]), `"answer"`) {
			problem = "generationConfig: no schema"
		}
		var b strings.Builder
		if claude {
			for _, e := range claudeEvents(a) {
				b.WriteString("event: " + typeOf(e) + "\ndata: " + e + "\n\n")
			}
		} else {
			for _, e := range geminiEvents(a) {
				b.WriteString("data: " + e + "\r\n\r\n")
			}
		}
		google := func(status int, name, message, details string) vertex.Reply {
			return vertex.Reply{
				Status: status, Label: "application/json",
				Body:   fmt.Sprintf(`[{"error":{"code":%d,"message":%q,"status":%q,"details":[%s]}}]`, status, message, name, details),
				Header: map[string]string{"Retry-After": a.retryAfter},
			}
		}
		switch {
		case problem != "":
			return google(http.StatusBadRequest, "INVALID_ARGUMENT", problem, "")
		case a.status == http.StatusTooManyRequests:
			return google(a.status, "RESOURCE_EXHAUSTED", "Resource exhausted", `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1s"}`)
		case a.status == http.StatusRequestEntityTooLarge && claude:
			return google(http.StatusBadRequest, "INVALID_ARGUMENT", "prompt is too long: 200001 tokens > 200000 maximum", "")
		case a.status == http.StatusRequestEntityTooLarge:
			return google(http.StatusBadRequest, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (8).", "")
		case a.status != 0:
			return google(a.status, "INTERNAL", "boom", "")
		case a.end == broken:
			return vertex.Reply{Body: b.String()[:b.Len()/2], Cut: true}
		}
		return vertex.Reply{Body: b.String()}
	}})
	t.Cleanup(s.Close)
	key := filepath.Join(t.TempDir(), "google.json")
	require.NoError(t, os.WriteFile(key, vertex.Credentials(s.URL, vertex.AccountKey()), 0o600))
	entry := fmt.Sprintf(`{"api":"vertex","baseUrl":%q,"key":{"file":%q},"google":{"project":%q,"location":"europe-west4"}}`, s.URL, key, vertex.Project)
	return []flavour{
		{id: "google", model: "gemini-2.5-flash", entry: entry, desk: d, counted: true},
		{id: "google", model: "claude-sonnet-4-5@20250929", entry: entry, desk: d, counted: true},
	}
}

// typeOf returns the type of an event.
func typeOf(doc string) string {
	var e struct{ Type string }
	_ = json.Unmarshal([]byte(doc), &e) // the events of this package have one
	return e.Type
}

// wantsClaudeSchema returns what is wrong with a request to a Claude model; empty if nothing is.
func wantsClaudeSchema(body []byte) string {
	a, err := readAnthropic(body)
	switch {
	case err != nil:
		return "Malformed input request"
	case !strings.Contains(string(a.schema), `"answer"`):
		return "output_config: no schema"
	case strings.Contains(string(a.schema), `"title"`) && strings.Contains(string(a.schema), `"minLength"`):
		return "output_config.format.schema: For 'string' type, property 'minLength' is not supported"
	}
	return ""
}
