package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const ticket = `{"reasoning":"charged twice","category":"billing","priority":"urgent","language":"en","summary":"Second charge for one lamp.","action":{"kind":"refund","orderId":"WL-48213","reason":"double charge"}}`

// The ladder of a kind that the node's contract rejects, as the console draws it.
func TestL3a_ExplainStopsAtTheContract(t *testing.T) {
	t.Parallel()
	u := member(t)
	answers(t, "asks", `{"type":"media.image","payload":{"base64":"aGk=","bytes":2,"mimeType":"image/png"}}`)
	r := u.run("run", "start", "contract", "--wait", "-o", "name")
	require.Equal(t, 1, r.status, r.err)
	id := r.out[:len(r.out)-1]
	text := u.ok("envelope", "explain", id).out
	for _, want := range []string{
		"Stopped at gate 4 of 8, contract: media.image",
		"1 shape      ✓ passed", "2 kind       ✓ passed", "3 payload    ✓ passed",
		"4 contract   ✕ refused      envelope_contract_violation: ",
		"refused   media.image", "accepted  ", "vendor.waybill.ticket.triage",
		"5 limits     · not reached", "6 redaction  · not reached", "7 dedup      · not reached", "8 routing    · not reached",
		"next (workflow author): ",
	} {
		require.Contains(t, text, want)
	}
	doc := document(t, u.ok("envelope", "explain", id, "asks", "-o", "json").out)
	require.Equal(t, "envelope_contract_violation", doc["executions"].([]any)[0].(map[string]any)["code"])
	require.Equal(t, 5, u.run("envelope", "explain", id, "ghost").status)
}

func TestL3b_ExplainNamesThePlaceOfAViolation(t *testing.T) {
	u := member(t)
	answers(t, "asks", `{"category":"bills"}`, ticket)
	r := u.ok("run", "start", "corrected", "--wait", "-o", "name")
	text := u.ok("envelope", "explain", r.out[:len(r.out)-1]).out
	require.Contains(t, text, "Accepted on attempt 2 after one schema violation")
	require.Contains(t, text, "3 payload    ✕ refused      envelope_invalid: ")
	require.Contains(t, text, "/category: not one of the allowed values")
	require.Contains(t, text, "rule /properties/category/enum")
	require.Contains(t, text, "8 routing    ✓ passed       artifact.created")
}

// Another OpenWOP host has the run, but no view of it.
func TestL3d_ExplainNamesAHostThatCannot(t *testing.T) {
	t.Parallel()
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v1/runs/run_1" {
			_, _ = w.Write([]byte(`{"runId":"run_1","workflowId":"w","status":"completed"}`))
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":"not_found","message":"no such thing"}`))
	}))
	t.Cleanup(host.Close)
	u := at(t, host.URL, testKey)
	r := u.run("envelope", "explain", "run_1")
	require.Equal(t, 6, r.status, r.err)
	require.Contains(t, r.err, "this host does not offer the model answers of a run")
	r = u.run("envelope", "explain", "run_2")
	require.Equal(t, 5, r.status, "a run that the host does not have is not found")
	require.Contains(t, r.err, "no such thing")
}

// No host and no network: the schemas are in the binary.
func TestL3c_ValidateNeedsNoHost(t *testing.T) {
	t.Parallel()
	u := at(t, "http://127.0.0.1:1", "")
	dir := t.TempDir()
	write := func(name, payload string) string {
		path := filepath.Join(dir, name)
		doc := `{"type":"clarification.request","schemaVersion":1,"envelopeId":"e","correlationId":"c","payload":` + payload +
			`,"meta":{"source":"ai-generation","ts":"2026-01-31T12:00:00Z"}}`
		require.NoError(t, os.WriteFile(path, []byte(doc), 0o600))
		return path
	}
	good := write("good.json", `{"questions":[{"id":"q1","question":"Which one?"}]}`)
	bad := write("bad.json", `{"questions":[{"id":"q1"}]}`)
	require.Contains(t, u.ok("envelope", "validate", good).out, "accepted: clarification.request")
	r := u.run("envelope", "validate", bad)
	require.Equal(t, 1, r.status)
	require.Contains(t, r.out, "/payload/questions/0")
	r = u.run("envelope", "validate", bad, "-o", "json")
	require.Equal(t, 1, r.status)
	require.Equal(t, "invalid", document(t, r.out)["status"])
	require.Equal(t, 2, u.run("envelope", "validate", filepath.Join(dir, "none.json")).status)
}
