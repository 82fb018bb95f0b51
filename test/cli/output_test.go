package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// commands lists all commands with output, with the files that some need.
func commands(t *testing.T, run, waiting string) map[string][]string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, doc string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(doc), 0o600))
		return path
	}
	schema := write("s.schema.json", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`)
	envelope := write("e.json", `{"type":"error","schemaVersion":1,"envelopeId":"e","correlationId":"c","payload":{"code":"x","message":"y"},"meta":{"source":"ai-generation","ts":"2026-01-31T12:00:00Z"}}`)
	flow := write("w.json", workflows[0])
	return map[string][]string{
		"run start": {"run", "start", "noop"}, "run list": {"run", "list"}, "run get": {"run", "get", run}, "run watch": {"run", "watch", run},
		"run wait": {"run", "wait", run}, "run events": {"run", "events", run}, "run cancel": {"run", "cancel", run}, "run cancel several": {"run", "cancel", run, run, "--dry-run"},
		"run fork": {"run", "fork", run}, "run diff": {"run", "diff", run, run}, "run export": {"run", "export", run}, "run verify": {"run", "verify", run},
		"run quarantine list": {"run", "quarantine", "list"}, "run owner": {"run", "owner", run},
		"interrupt list": {"interrupt", "list"}, "interrupt show": {"interrupt", "show", waiting},
		"capabilities": {"capabilities"}, "conformance": {"conformance", "--workflow", "noop"}, "capabilities diff": {"capabilities", "diff", "@current", "@current"},
		"context list": {"context", "list"}, "context show": {"context", "show"}, "doctor": {"doctor"},
		"explain code": {"explain", "conflict"}, "explain event": {"explain", "node.failed"}, "cheat": {"cheat"}, "cheat runs": {"cheat", "runs"}, "version": {"version"},
		"envelope explain": {"envelope", "explain", run}, "envelope validate": {"envelope", "validate", envelope},
		"workflow list": {"workflow", "list"}, "workflow lint": {"workflow", "lint", flow}, "workflow register": {"workflow", "register", flow},
		"redact test": {"redact", "test", flow}, "schema lint": {"schema", "lint", schema}, "model list": {"model", "list"}, "model show": {"model", "show", "sample/sample-1"},
	}
}

// Every command can print one JSON document without escapes.
func TestL5a_EveryCommandWritesJSON(t *testing.T) {
	t.Parallel()
	u := member(t).with("NO_COLOR=1", "COLUMNS=80")
	run := u.start("noop")
	u.ok("run", "wait", run)
	for name, args := range commands(t, run, u.waiting("approve")) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := u
			u.t = t
			r := u.ok(append(args, "-o", "json")...)
			require.NotContains(t, r.out+r.err, "\x1b")
			var v any
			require.NoError(t, json.Unmarshal([]byte(r.out), &v), r.out)
		})
	}
}

// Every command with documents has --query.
func TestL5f_EveryCommandTakesAQuery(t *testing.T) {
	t.Parallel()
	u := member(t)
	run := u.start("noop")
	u.ok("run", "wait", run)
	all := commands(t, run, u.waiting("approve"))
	delete(all, "run export") // it is a copy
	for name, args := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := u
			u.t = t
			require.Regexp(t, `^"(object|array)"\n$`, u.ok(append(args, "--query", "type")...).out)
		})
	}
	require.Equal(t, "a: noop\n", u.ok("run", "get", run, "--query", "{a: .workflowId}", "-o", "yaml").out)
	require.Equal(t, "{\"a\":\"noop\"}\n", u.ok("run", "get", run, "--query", "{a: .workflowId}", "-o", "jsonl").out)
	require.Equal(t, "noop\n2\n", u.ok("run", "get", run, "--query", ".workflowId, 1 + 1", "-r").out)
	require.Equal(t, "a\nb\\u001b\n", u.ok("run", "get", run, "--query", `"a\nb\u001b"`, "--raw").out)
	require.Equal(t, 2, u.run("run", "get", run, "-r").status)
	for _, wrong := range []string{".[", "nosuchfunction", ".runs.nothing.there"} {
		r := u.run("run", "list", "--query", wrong)
		require.Equal(t, 2, r.status, r.err)
		require.Empty(t, r.out)
		require.Contains(t, r.err, "error: usage: --query: ")
	}
	require.Contains(t, u.run("run", "list", "--query", ".runs[").err, `at character 7, after ".runs["`)
	require.Equal(t, 2, u.run("run", "export", run, "--query", ".").status)
}

// The other formats have the same content.
func TestL5b_YAMLAndLinesHaveTheSameContent(t *testing.T) {
	t.Parallel()
	u := member(t)
	run := u.start("noop")
	u.ok("run", "wait", run)
	for _, args := range [][]string{{"run", "get", run}, {"capabilities"}, {"explain", "conflict"}, {"run", "events", run}} {
		var fromJSON, fromYAML any
		require.NoError(t, json.Unmarshal([]byte(u.ok(append(args, "-o", "json")...).out), &fromJSON))
		require.NoError(t, yaml.Unmarshal([]byte(u.ok(append(args, "-o", "yaml")...).out), &fromYAML))
		again, err := json.Marshal(fromYAML)
		require.NoError(t, err)
		want, err := json.Marshal(fromJSON)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(again))
	}
	lines := strings.Split(strings.TrimSpace(u.ok("run", "events", run, "-o", "jsonl").out), "\n")
	require.Len(t, lines, 4)
	for _, line := range lines {
		require.True(t, json.Valid([]byte(line)), line)
	}
	require.Equal(t, 2, u.run("run", "list", "-o", "xml").status)
	require.Equal(t, 2, u.run("run", "list", "--query", ".[").status)
	require.Contains(t, u.ok("run", "list", "--template", `{{range .runs}}{{.runId}} is {{.status}}{{"\n"}}{{end}}`).out, run+" is ")
	require.Equal(t, 2, u.run("run", "list", "--template", "{{").status)
	require.Equal(t, 2, u.run("run", "list", "--template", "x", "--query", ".").status)
	require.Equal(t, 2, u.run("run", "list", "--template", "x", "-o", "name").status)
	require.Equal(t, 2, u.run("run", "list", "-o", "name", "--query", ".").status)
}

// Tables fit 80 columns with complete ids.
func TestL5c_TablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	u := member(t).with("COLUMNS=80")
	id := u.waiting("approve")
	for _, args := range [][]string{{"run", "list"}, {"interrupt", "list"}, {"run", "events", id}, {"capabilities"}, {"workflow", "list"}} {
		for line := range strings.Lines(u.ok(args...).out) {
			require.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 80, "%v: %s", args, line)
		}
	}
	require.Contains(t, u.ok("run", "list").out, id)
}

// terminal runs a command on a pseudo-terminal and returns its screen.
func terminal(t *testing.T, u user, columns uint16, args ...string) (screen string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cmdTimeout)
	defer cancel()
	cmd := u.command(ctx, args...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: columns})
	require.NoError(t, err)
	defer func() { _ = tty.Close() }()
	var seen bytes.Buffer
	if _, err := io.Copy(&seen, tty); err != nil && !errors.Is(err, os.ErrClosed) {
		var path *os.PathError
		require.ErrorAs(t, err, &path, "reading a terminal whose process has ended")
	}
	_ = cmd.Wait() // its state has the result
	return seen.String(), cmd.ProcessState.ExitCode()
}

// escapes matches the escape sequences that a terminal interprets.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

func TestL5d_ATerminalGetsColorsAndADrawing(t *testing.T) {
	t.Parallel()
	u := member(t)
	id := u.start("fail")
	screen, status := terminal(t, u, 100, "run", "watch", id)
	require.Equal(t, 1, status)
	require.Contains(t, screen, "\x1b[31m", "failures are red")
	text := escapes.ReplaceAllString(screen, "")
	require.Contains(t, text, "✕ a ", "a line for the node")
	require.Contains(t, text, "█")
	require.Contains(t, text, "✕ failed  "+id, "the word, not the color alone")
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\r\n"))), 100, line)
	}

	for _, quiet := range []user{u.with("NO_COLOR=1"), u.with("TERM=dumb")} {
		screen, _ = terminal(t, quiet, 100, "run", "list")
		require.NotContains(t, screen, "\x1b[3")
		require.Contains(t, screen, "failed")
	}
	screen, _ = terminal(t, u, 100, "run", "list")
	require.Contains(t, screen, "✕ failed")
	require.Contains(t, u.ok("run", "list", "--color", "always").out, "\x1b[31mfailed")
	require.Equal(t, 2, u.run("run", "list", "--color", "sometimes").status)
}

// A model's text is shown without its escape sequences.
func TestL5e_EscapeSequencesOfModelsAreEscaped(t *testing.T) {
	t.Parallel()
	u := member(t)
	id := u.start("echo", "--input", `{"text":"\u001b[2Jgone\u202etxt.exe"}`)
	u.ok("run", "wait", id)
	for _, args := range [][]string{{"run", "watch", id}, {"run", "get", id}, {"run", "events", id}} {
		r := u.ok(args...)
		require.NotContains(t, r.out, "\x1b", args)
		require.NotContains(t, r.out, "\u202e", args)
	}
	require.Contains(t, u.ok("run", "get", id).out, `u001b`)
}
