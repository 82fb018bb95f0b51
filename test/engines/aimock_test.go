package engines

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/freeport"
	"waybill.dev/waybill/test/harness"
)

// doubled are the vendors whose APIs aimock has, with the path below its address.
var doubled = map[string]struct{ path, model string }{
	"openai":    {"/v1", "gpt-4o"},
	"anthropic": {"", "claude-sonnet-4-5"},
	"gemini":    {"", "gemini-2.5-flash"},
}

const (
	answerSchema = `{"type":"object","additionalProperties":false,"required":["answer"],"properties":{"answer":{"type":"integer"}}}`
	// counted is the usage of each answer.
	counted = `"usage":{"prompt_tokens":31,"completion_tokens":12,"total_tokens":43}`
)

// disturbance is a case: what aimock does to the first call or to all calls, and what becomes of the run.
type disturbance struct {
	// first is the fixture of the first call without its match; empty for a good answer. always means that
	// it is that of each call.
	first  string
	always bool
	calls  int
	code   string // of a failed run
	// retried is the code with which the node is retried.
	retried string
	event   string // one more event that the run has
	usage   int    // calls with usage
}

func disturbances() map[string]disturbance {
	right := `"response":{"content":"{\"answer\":42}",` + counted + `}`
	return map[string]disturbance{
		"nothing":    {calls: 1, usage: 1},
		"emoji":      {first: `"response":{"content":"😀 {\"answer\":42} 😀",` + counted + `}`, calls: 1, usage: 1, event: "envelope.recovery.applied"},
		"wrong":      {first: `"response":{"content":"{\"answer\":\"x\"}",` + counted + `}`, calls: 2, usage: 2, event: "envelope.retry.attempted"},
		"length":     {first: `"response":{"content":"{\"answer\":4","finishReason":"length",` + counted + `}`, always: true, calls: 3, usage: 3, code: "envelope_truncation_unrecoverable", event: "envelope.truncated"},
		"rate limit": {first: `"response":{"error":{"message":"slow down","type":"rate_limit_error"},"status":429}`, calls: 2, usage: 1, retried: "provider_quota_exhausted"},
		"overloaded": {first: `"response":{"error":{"message":"busy","type":"overloaded_error"},"status":503}`, calls: 2, usage: 1, retried: "provider_unavailable"},
		"no key":     {first: `"response":{"error":{"message":"invalid key","type":"authentication_error"},"status":401}`, always: true, calls: 1, code: "credential_required"},
		"bad":        {first: `"response":{"error":{"message":"top_k is odd","type":"invalid_request_error"},"status":400}`, always: true, calls: 1, code: "provider_request_invalid"},
		"cut":        {first: right + `,"truncateAfterChunks":2,"chunkSize":4`, calls: 2, usage: 1, retried: "provider_unavailable"},
		"drop":       {first: right + `,"chaos":{"dropRate":1}`, calls: 2, usage: 1, retried: "provider_unavailable"},
		"disconnect": {first: right + `,"chaos":{"disconnectRate":1}`, calls: 2, usage: 1, retried: "provider_unavailable"},
		"malformed":  {first: right + `,"chaos":{"malformedRate":1}`, calls: 2, usage: 1, retried: "provider_unavailable"},
		"drop twice": {first: right + `,"chaos":{"dropRate":1}`, always: true, calls: 2, code: "provider_unavailable", retried: "provider_unavailable"},
	}
}

// caseName is the mark of a case in its prompt.
func caseName(vendor, name string) string {
	return "[case:" + vendor + "-" + strings.ReplaceAll(name, " ", "-") + "]"
}

// fixtures are the answers of aimock. A correction is the last message of a prompt, so it has a fixture of
// its own.
func fixtures() string {
	right := `"response":{"content":"{\"answer\":42}",` + counted + `}`
	var list []string
	for vendor := range doubled {
		for name, d := range disturbances() {
			match := fmt.Sprintf(`"userMessage":%q`, caseName(vendor, name))
			switch {
			case d.first != "" && d.always:
				list = append(list, `{"match":{`+match+`},`+d.first+`}`)
			case d.first != "":
				list = append(list, `{"match":{`+match+`,"sequenceIndex":0},`+d.first+`}`, `{"match":{`+match+`},`+right+`}`)
			default:
				list = append(list, `{"match":{`+match+`},`+right+`}`)
			}
		}
	}
	return `{"fixtures":[` + strings.Join(append(list, `{"match":{"userMessage":"was not accepted"},`+right+`}`), ",\n") + `]}`
}

// aimock starts aimock, and returns its address.
func aimock(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("WAYBILL_AIMOCK")
	if folder == "" {
		t.Skip("WAYBILL_AIMOCK is unset: it names a folder with the npm package @copilotkit/aimock")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "fixtures.json"), []byte(fixtures()), 0o600))
	port := freeport.Take(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "node_modules", ".bin", "llmock"),
		"--port", port, "--host", "127.0.0.1", "--fixtures", filepath.Join(dir, "fixtures.json"))
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the context has ended
	url := "http://127.0.0.1:" + port
	require.Eventually(t, func() bool { return status(url+"/__aimock/health") == http.StatusOK }, 30*time.Second, 50*time.Millisecond, "aimock listens")
	return url
}

// callsOf counts the calls of a case in aimock's journal.
func callsOf(t *testing.T, url, mark string) int {
	t.Helper()
	res, err := http.Get(url + "/__aimock/journal") //nolint:noctx,gosec // a test's own server
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	var entries []struct{ Body json.RawMessage }
	require.NoError(t, json.Unmarshal(b, &entries))
	n := 0
	for _, e := range entries {
		if strings.Contains(string(e.Body), mark) {
			n++
		}
	}
	return n
}

// Another project's doubles of three vendors, undisturbed and with everything that they can do wrong:
// outcome, code, number of calls and usage.
func TestAimock(t *testing.T) {
	t.Parallel()
	url := aimock(t)
	args, env := []string{}, []string{}
	for vendor, v := range doubled {
		args = append(args, "--provider", vendor+"="+url+v.path)
		env = append(env, "WAYBILL_PROVIDER_"+strings.ToUpper(vendor)+"_KEY=sk-aimock-0123456789")
	}
	h := harness.StartWith(t, harness.Options{Args: args, Env: env})
	c := h.Client("dev-key")
	for vendor, v := range doubled {
		for name, d := range disturbances() {
			t.Run(vendor+"/"+name, func(t *testing.T) {
				t.Parallel()
				mark := caseName(vendor, name)
				id := strings.Trim(strings.ReplaceAll(mark, ":", "-"), "[]")
				require.NoError(t, h.Deploy([]string{strings.Replace(flow(id, "core.ai.structuredOutput", fmt.Sprintf(
					`{"provider":%q,"model":%q,"prompt":%q,"maxTokens":64,"outputSchema":%s}`, vendor, v.model, mark+" six times seven", answerSchema)),
					`"metadata":{}`, `"metadata":{},"settings":{"maxRetries":1}`, 1)}, "dev-key"))
				r := run(t, c, id)
				require.Equal(t, d.code, r.code, r.dump)
				require.Equal(t, d.calls, callsOf(t, url, mark), r.dump)
				require.Len(t, r.usage, d.usage, r.dump)
				for _, u := range r.usage {
					require.Equal(t, []int{31, 12}, []int{u.InputTokens, u.OutputTokens}, r.dump)
				}
				if d.event != "" {
					require.Positive(t, r.count[d.event], r.dump)
				}
				require.Equal(t, d.retried != "", r.count["node.retried"] > 0, r.dump)
				if d.retried != "" {
					require.Contains(t, r.dump, `"lastError":{"code":"`+d.retried+`"`)
				}
				if d.code != "" {
					require.Equal(t, "failed", r.status)
					require.NotEmpty(t, r.message)
					return
				}
				require.Equal(t, "completed", r.status, r.dump)
				require.JSONEq(t, `{"answer":42}`, r.output)
			})
		}
	}
}
