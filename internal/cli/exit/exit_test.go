package exit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/protocol/fault"
)

func refused(status int, code fault.Code) error {
	return fmt.Errorf("outer: %w", &client.Error{Status: status, Fault: fault.New(code, "because")})
}

func TestStatus_DependsOnTheKindOfError(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		err  error
		want int
	}{
		{"nothing", nil, exit.Done},
		{"anything", errors.New("x"), exit.Failed},
		{"usage", exit.Usagef("x"), exit.Usage},
		{"an outcome", exit.Outcome(exit.Waiting, "x"), exit.Waiting},
		{"no outcome", exit.Outcome(exit.Done, "x"), exit.Done},
		{"no credential", refused(401, fault.Unauthenticated), exit.Denied},
		{"no scope", refused(403, fault.Forbidden), exit.Denied},
		{"absent", refused(404, fault.RunNotFound), exit.NotFound},
		{"an invalid value", refused(400, fault.ValidationError), exit.Refused},
		{"a conflict", refused(409, fault.Conflict), exit.Refused},
		{"gone", refused(410, fault.InterruptGone), exit.Refused},
		{"too old", refused(426, fault.ClientVersionUnsupported), exit.Refused},
		{"not offered", refused(501, fault.CapabilityNotProvided), exit.Refused},
		{"a route that the host lacks", fmt.Errorf("%w: x", &client.UnofferedError{Feature: "a list"}), exit.Refused},
		{"too much", refused(429, fault.RateLimited), exit.Unreachable},
		{"broken", refused(500, fault.InternalError), exit.Unreachable},
		{"a code of another host", refused(418, "teapot"), exit.Refused},
		{"away", fmt.Errorf("%w: x", client.ErrUnreachable), exit.Unreachable},
		{"late", context.DeadlineExceeded, exit.Unreachable},
		{"another server", &client.ForeignError{Status: 200}, exit.Refused},
		{
			"a proxy without its host",
			fmt.Errorf("%w: %w", client.ErrUnreachable, &client.ForeignError{Status: 502}),
			exit.Unreachable,
		},
		{"no run", client.ErrNoRuns, exit.NotFound},
		{"Ctrl-C", context.Canceled, exit.Interrupted},
		{"a code of runs", fault.New(fault.CapBreached, "x"), exit.Failed},
	} {
		require.Equal(t, tc.want, exit.Status(tc.err), tc.name)
	}
	require.NoError(t, exit.With(exit.Usage, nil))
}

func TestReport_PrintsCodeMessageAndHint(t *testing.T) {
	t.Parallel()
	err := refused(404, fault.RunNotFound)
	var text, doc bytes.Buffer
	exit.Report(&text, err, false)
	require.Equal(t, "error: run_not_found: because\nhint: "+fault.Lookup(fault.RunNotFound).Next+"\n", text.String())
	exit.Report(&doc, err, true)
	var v map[string]any
	require.NoError(t, json.Unmarshal(doc.Bytes(), &v))
	require.Equal(t, map[string]any{
		"error":   "run_not_found",
		"message": "because",
		"hint":    fault.Lookup(fault.RunNotFound).Next,
		"exit":    5.0,
	}, v)
}

// Errors of the command line have a code, too, printed once.
func TestReport_HasCodesForErrorsOfTheCommandLine(t *testing.T) {
	t.Parallel()
	for text, err := range map[string]error{
		"error: usage: no such flag\n":    exit.With(exit.Usage, exit.Usagef("no such flag")),
		"error: usage: --limit: want 1\n": exit.Usagef("--limit: want 1"),
		"error: not_found: none\n":        exit.With(exit.NotFound, errors.New("none")),
	} {
		var out bytes.Buffer
		exit.Report(&out, err, false)
		require.Equal(t, text, out.String())
		out.Reset()
		exit.Report(&out, err, true)
		require.NotContains(t, out.String(), `"message":"usage`)
	}
}

// Joined errors are printed one per line. Later lines are indented, so that none looks like a
// message of its own. Control characters are escaped.
func TestReport_PrintsJoinedErrorsOnePerLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	exit.Report(&out, exit.Usagef("%w", errors.Join(errors.New("--a: want 1"), errors.New("error: \x1b[2J--b"))), false)
	require.Equal(t, "error: usage: --a: want 1\n  error: \\u001b[2J--b\n", out.String())
}

// All faults of a local file are printed. Only errors from a host have a hint, because hints are
// about requests.
func TestReport_PrintsEachFaultOfAFile(t *testing.T) {
	t.Parallel()
	one := fault.New(fault.ValidationError, "pack a: x").With("path", "/name")
	two := fault.New(fault.HostCapabilityMissing, "pack b: y")
	for _, tc := range []struct {
		err  error
		text string
		doc  map[string]any
	}{
		{
			exit.With(exit.Usage, fmt.Errorf("--packs p: %w", errors.Join(one, two))),
			"error: usage: --packs p: validation_error: pack a: x\n  host_capability_missing: pack b: y\n",
			map[string]any{
				"error":   "usage",
				"exit":    2.0,
				"message": "--packs p: validation_error: pack a: x\nhost_capability_missing: pack b: y",
				"details": map[string]any{"problems": []any{
					map[string]any{"error": "validation_error", "message": "pack a: x", "details": map[string]any{"path": "/name"}},
					map[string]any{"error": "host_capability_missing", "message": "pack b: y"},
				}},
			},
		},
		{
			exit.With(exit.Usage, fmt.Errorf("--packs p: %w", errors.Join(one))),
			"error: validation_error: pack a: x\n",
			map[string]any{
				"error": "validation_error", "exit": 2.0, "message": "pack a: x", "details": map[string]any{"path": "/name"},
			},
		},
		// Other errors that are joined with the fault are printed, too.
		{
			exit.With(exit.Usage, errors.Join(fmt.Errorf("a.json: %w", one), errors.New("open b.json: denied"))),
			"error: usage: a.json: validation_error: pack a: x\n  open b.json: denied\n",
			map[string]any{
				"error": "usage", "exit": 2.0, "message": "a.json: validation_error: pack a: x\nopen b.json: denied",
			},
		},
		{
			errors.Join(one, errors.New("x did not stop")),
			"error: validation_error: pack a: x\n  x did not stop\n",
			map[string]any{
				"error": "failed", "exit": 6.0, "message": "validation_error: pack a: x\nx did not stop",
			},
		},
		{
			exit.With(exit.Usage, one),
			"error: validation_error: pack a: x\n",
			map[string]any{
				"error": "validation_error", "exit": 2.0, "message": "pack a: x", "details": map[string]any{"path": "/name"},
			},
		},
	} {
		var text, doc bytes.Buffer
		exit.Report(&text, tc.err, false)
		require.Equal(t, tc.text, text.String())
		exit.Report(&doc, tc.err, true)
		var v map[string]any
		require.NoError(t, json.Unmarshal(doc.Bytes(), &v))
		require.Equal(t, tc.doc, v)
	}
}

func TestReport_PrintsNothingForAReportedOutcome(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	exit.Report(&out, exit.Outcome(exit.Failed, "the run failed"), false)
	exit.Report(&out, nil, true)
	require.Empty(t, out.String())
	exit.Report(&out, errors.New("\x1b[2Jx"), false)
	require.Equal(t, "error: \\u001b[2Jx\n", out.String())
}
