package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// logged returns a host with some runs, and a user of it.
func logged(t *testing.T) (*harness.Host, user) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, starts a real process: run without -short")
	}
	h := harness.Start(t, "--api-key", testKey+"=acme:*", "--durability", "process")
	require.NoError(t, h.Deploy(workflows, testKey))
	u := at(t, h.HTTP, testKey)
	u.ok("run", "start", "echo", "--set", "text=padding-one", "--wait")
	u.ok("run", "start", "echo", "--set", "text=padding-two", "--wait")
	u.start("approve")
	return h, u
}

// flip flips two bits of a stream's file, in the first and the last letter of a text. A single flip
// would be repaired.
func flip(t *testing.T, h *harness.Host, stream, text string) {
	t.Helper()
	file := filepath.Join(h.Dir(), "nats", "jetstream", "$G", "streams", stream, "msgs", "1.blk")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	at := bytes.Index(b, []byte(text))
	require.Positive(t, at)
	b[at], b[at+len(text)-1] = b[at]^1, b[at+len(text)-1]^1
	require.NoError(t, os.WriteFile(file, b, 0o600))
}

func TestLogVerify_FindsDamageAndNothingBefore(t *testing.T) {
	t.Parallel()
	h, u := logged(t)
	r := u.run("log", "verify", "--data-dir", h.Dir())
	require.Equal(t, 6, r.status, "its host has it: %s", r.err)
	h.Stop()

	r = u.ok("log", "verify", "--data-dir", h.Dir(), "-o", "json")
	for check, status := range checks(t, r.out) {
		require.Equal(t, "ok", status, check)
	}
	doc := document(t, r.out)
	require.InDelta(t, 3, doc["runs"], 0)
	require.Greater(t, doc["frames"], doc["runs"])
	again := u.ok("log", "verify", "--data-dir", h.Dir(), "-o", "json")
	require.JSONEq(t, r.out, again.out, "verifying changes nothing")

	flip(t, h, "WAYBILL_RUNS", "padding-two")
	r = u.run("log", "verify", "--data-dir", h.Dir())
	require.Equal(t, 1, r.status, r.err)
	require.Regexp(t, `frames +fail +1 found`, r.out)
	require.Regexp(t, `audit-chain +ok`, r.out)
	require.NotContains(t, r.out+r.err, "padding-", "damaged records must not be shown")

	flip(t, h, "WAYBILL_AUDIT", "workflow.registered")
	r = u.run("log", "verify", "--data-dir", h.Dir(), "-o", "json")
	require.Equal(t, 1, r.status, r.err)
	require.Equal(t, "fail", checks(t, r.out)["audit-chain"])

	// A host with its key elsewhere, or without an audit log, has none in its directory.
	require.NoError(t, os.Remove(filepath.Join(h.Dir(), "audit.key")))
	r = u.run("log", "verify", "--data-dir", h.Dir(), "-o", "json")
	require.Equal(t, "skipped", checks(t, r.out)["audit-chain"])
	require.NoFileExists(t, filepath.Join(h.Dir(), "audit.key"))
}

func TestLogVerify_ReportsAMissingLog(t *testing.T) {
	t.Parallel()
	u := stranger(t)
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		args   []string
		status int
	}{
		"no directory":  {[]string{"--data-dir", filepath.Join(dir, "none")}, 5},
		"no log in it":  {[]string{"--data-dir", dir}, 5},
		"no NATS":       {[]string{"--nats", "nats://127.0.0.1:1"}, 7},
		"a bad address": {[]string{"--nats", "nowhere at all"}, 2},
	} {
		r := u.run(append([]string{"log", "verify"}, tc.args...)...)
		require.Equal(t, tc.status, r.status, "%s: %s", name, r.err)
		require.Empty(t, r.out, name)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "nothing is created")
}
