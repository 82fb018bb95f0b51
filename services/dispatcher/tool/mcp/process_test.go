package mcp_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/tool/mcp"
)

// program runs this test binary as a server.
func program(t *testing.T) *mcp.Runner {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return runner(t, "stdio:"+self, func(c *mcp.Config) { c.Env = []string{asServer + "=1"} })
}

func TestRun_SpeaksWithAProgram(t *testing.T) {
	t.Parallel()
	r := program(t)
	require.JSONEq(t, `"{\"a\":1}\n<b>"`, string(want(t, call(t, r, `{"server":"x","tool":"echo","arguments":{"a":1}}`))["output"]))

	var env string
	require.NoError(t, json.Unmarshal(want(t, call(t, r, `{"server":"x","tool":"env"}`))["output"], &env))
	require.Equal(t, asServer+"=1", strings.TrimSpace(env), "nothing of the host's environment")

	fails(t, call(t, r, `{"server":"x","tool":"broken"}`), "tool_failed")
	fails(t, call(t, r, `{"server":"x","tool":"slow","timeoutMs":30}`), "service_unavailable")
}

func TestRun_StartsAProgramAgain(t *testing.T) {
	t.Parallel()
	r := program(t)
	for range 2 {
		require.True(t, fails(t, call(t, r, `{"server":"x","tool":"die"}`), "service_unavailable").Retryable)
		want(t, call(t, r, `{"server":"x","tool":"echo"}`))
	}
	fails(t, call(t, r, `{"server":"x","tool":"large"}`), "content_too_long")
	want(t, call(t, r, `{"server":"x","tool":"echo"}`))
}

func TestRun_ReportsAProgramThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"stdio:/no/such/program", "stdio:/bin/true"} {
		require.True(t, fails(t, call(t, runner(t, command), `{"server":"x","tool":"t"}`), "service_unavailable").Retryable, command)
	}
}

// A program that does not end by itself is killed together with its child processes.
func TestClose_EndsTheProgram(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	script := dir + "/server"
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho $$ > "+dir+"/pid\n"+self+"\nexec sleep 600\n"), 0o700)) //nolint:gosec // G306: a program
	r := runner(t, "stdio:"+script, func(c *mcp.Config) { c.Env = []string{asServer + "=1", "PATH=/usr/bin:/bin"} })
	want(t, call(t, r, `{"server":"x","tool":"echo"}`))
	pid, err := os.ReadFile(dir + "/pid")
	require.NoError(t, err)
	r.Close()
	require.NoDirExists(t, "/proc/"+strings.TrimSpace(string(pid)))
	require.Contains(t, call(t, r, `{"server":"x","tool":"echo"}`).Err.Message, "could not be asked")
}
