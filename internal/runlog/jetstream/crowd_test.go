package jetstream_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/internal/runlog/runlogtest"
	"waybill.dev/waybill/protocol/subject"
)

// manyWriters is enough for appends to share syncs.
const manyWriters = 64

// writers each append to a run of their own.
func writers(log *jetstream.Log, prefix string) []*runlogtest.Writer {
	all := make([]*runlogtest.Writer, manyWriters)
	for i := range all {
		run := subject.Run{Tenant: "acme", WorkflowID: "flow-1", RunID: fmt.Sprintf("%s-%d", prefix, i)}
		all[i] = &runlogtest.Writer{Log: full{Log: log}, Run: run, Name: "w"}
	}
	return all
}

// The log's server restarts under many concurrent appends. Every acknowledged frame is there, and
// the only writer of a run gets no conflict.
func TestLog_ManyWritersSurviveAServerThatRestarts(t *testing.T) {
	t.Parallel()
	srv, log := serve(t, t.TempDir(), testConfig())
	all := writers(log, "run")
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for i, w := range all {
		wg.Go(func() { errs[i] = w.Add(ctx, 60) })
	}
	for n := range uint64(3) {
		require.Eventually(t, func() bool {
			end, err := log.End(ctx)
			return err == nil && end > (n+1)*600
		}, time.Minute, time.Millisecond)
		require.NoError(t, srv.Restart())
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	for _, w := range all {
		require.Zero(t, w.Lost, "%s", w.Run.RunID)
		runlogtest.Unbroken(t, full{Log: log}, w.Run, w.Stored)
	}
}

// childDir names the directory in which a process of this binary writes until it is
// killed.
const childDir = "WAYBILL_TEST_LOG_DIR"

// writeUntilKilled prints each acknowledged frame.
func writeUntilKilled(dir string) error {
	srv, err := natsd.Start(context.Background(), natsd.Config{Dir: dir, Sync: true, Log: slog.New(slog.DiscardHandler)}, "secret")
	if err != nil {
		return err
	}
	nc, err := srv.Connect("child")
	if err != nil {
		return err
	}
	cfg := testConfig()
	cfg.OnDisk = srv.OnDisk
	log, err := jetstream.Open(context.Background(), nc, cfg)
	if err != nil {
		return err
	}
	errs := make(chan error)
	for _, w := range writers(log, strconv.Itoa(os.Getpid())) {
		go func() {
			known := map[string]uint64{}
			for n := 1; ; n++ {
				if err := w.Add(context.Background(), n); err != nil {
					errs <- err
					return
				}
				for hash, pos := range w.Stored {
					if known[hash] == 0 {
						fmt.Fprintln(os.Stdout, w.Run.RunID, hash, pos) // one write: lines of writers do not mix
					}
				}
				maps.Copy(known, w.Stored)
			}
		}()
	}
	return <-errs
}

// The process with the log is killed repeatedly during appends. When the log is reopened, every
// acknowledged frame is there and every run is complete.
func TestLog_ManyWritersSurviveAProcessThatIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acknowledged := map[string]map[string]uint64{}
	for range 4 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			var run, hash string
			var pos uint64
			_, err := fmt.Sscan(lines.Text(), &run, &hash, &pos)
			require.NoError(t, err, "%q", lines.Text())
			if acknowledged[run] == nil {
				acknowledged[run] = map[string]uint64{}
			}
			acknowledged[run][hash] = pos
			if n == 1000 {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		state, ok := cmd.ProcessState, false
		if err := cmd.Wait(); err != nil {
			exit, is := errors.AsType[*exec.ExitError](err)
			require.True(t, is, "%v", err)
			state = exit.ProcessState
		}
		if status, is := state.Sys().(syscall.WaitStatus); is {
			ok = status.Signal() == syscall.SIGKILL
		}
		require.True(t, ok, "it was killed, and did not end by itself: %s", state)
	}
	_, log := serve(t, dir, testConfig())
	require.Len(t, acknowledged, 4*manyWriters)
	for id, stored := range acknowledged {
		run := subject.Run{Tenant: "acme", WorkflowID: "flow-1", RunID: id}
		frames, err := log.Run(t.Context(), run)
		require.NoError(t, err)
		// The run's last frame may be stored without an acknowledgement.
		require.LessOrEqual(t, len(frames), len(stored)+1, "run %s", id)
		for _, f := range frames[min(len(stored), len(frames)):] {
			stored[f.Hash] = f.Pos
		}
		runlogtest.Unbroken(t, full{Log: log}, run, stored)
	}
}
