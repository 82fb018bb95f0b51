package cli

import (
	"bufio"
	"context"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// L2b: a watch of a waiting run shows what it waits for, also through a pipe. An interrupted watch
// prints no outcome of the run.
func TestL2b_AWatchShowsWhatARunWaitsFor(t *testing.T) {
	t.Parallel()
	u := member(t)
	id := u.waiting("approve")
	ctx, cancel := context.WithTimeout(t.Context(), cmdTimeout)
	defer cancel()
	cmd := u.command(ctx, "run", "watch", id)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	messages := bufio.NewReader(stderr)
	line := func() string {
		text, err := messages.ReadString('\n')
		require.NoError(t, err)
		return text
	}
	require.Contains(t, line(), "console: ")
	require.Contains(t, line(), "waits for an answer at gate (approval)")
	require.Equal(t, "how to answer: waybill interrupt show "+id+" gate\n", line())
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.Equal(t, "error: interrupted: stopped before the end\n", line())
	var ended *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &ended)
	require.Equal(t, 130, ended.ExitCode())
}
