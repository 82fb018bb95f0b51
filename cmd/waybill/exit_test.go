package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

func TestExitStatus_TellsEndsApart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"done":                     {nil, 0},
		"accepted":                 {judged(accept.Accepted), 0},
		"a bad flag":               {fmt.Errorf("%w: --x", errUsage), 2},
		"anything else":            {errors.New("boom"), 1},
		"invalid":                  {judged(accept.Invalid), 6},
		"gated":                    {judged(accept.Gated), 6},
		"breached":                 {judged(accept.Breached), 6},
		"an outcome of the future": {judged("postponed"), 6},
		"away":                     {fmt.Errorf("open run: %w", fault.New(fault.ServiceUnavailable, "away")), 7},
		"silent":                   {context.DeadlineExceeded, 7},
		"a run that is not open":   {fault.New(fault.RunNotFound, "none"), 5},
		"no such model":            {fmt.Errorf("model x: %w", errUnknownModel), 5},
	} {
		require.Equal(t, tc.want, exit.Status(tc.err), name)
	}
	require.ErrorIs(t, judged(accept.Gated), errRefused)
}

// A command line that cannot be used ends with 2, whoever finds out, and names the way to help.
func TestExecute_RefusesAWrongCommandLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"ghost":                          `waybill has no command "ghost"`,
		"run watc":                       `waybill run has no command "watc"; did you mean wait or watch?`,
		"run get":                        "accepts 1 arg(s), received 0 (see waybill run get --help)",
		"run list --ghost":               "unknown flag: --ghost",
		"run start w --wait --watch":     "wait watch",
		"run list -o xml":                `--output "xml": want table, wide, json, jsonl, yaml, name`,
		"interrupt answer r":             "value action answer",
		"context set x --url nowhere":    `--url: "nowhere" is no URL of a host`,
		"run export r --what everything": `--what "everything"`,
		"envelope accept x.json":         "required flag",
	} {
		var out, errs bytes.Buffer
		c := root(&out, &errs)
		c.SetArgs(strings.Fields(line))
		status := execute(t.Context(), c)
		require.Equal(t, exit.Usage, status, "%s: %s", line, errs.String())
		require.Contains(t, errs.String(), want, line)
		require.Empty(t, out.String(), line)
	}
}
