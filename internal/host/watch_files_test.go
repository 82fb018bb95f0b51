package host

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"
)

// watching is a watcher of one folder that notes its calls.
type watching struct {
	*fileWatcher

	dir   string
	calls []string
}

func newWatching(t *testing.T) *watching {
	t.Helper()
	w := &watching{dir: t.TempDir()}
	w.fileWatcher = &fileWatcher{
		log: slog.New(slog.DiscardHandler), workflows: []string{w.dir},
		load: func(_ context.Context, file string) (string, bool) {
			w.calls = append(w.calls, filepath.Base(file))
			return "", false
		},
		removeGone: func(context.Context) { w.calls = append(w.calls, "removeGone") },
		changed:    map[string]change{}, said: map[string]string{},
	}
	return w
}

func (w *watching) event(op fsnotify.Op, name string) {
	w.note(fsnotify.Event{Name: filepath.Join(w.dir, name), Op: op})
}

// pass lets time pass, as if everything had been noted earlier, and applies what is due.
func (w *watching) pass(t *testing.T, d time.Duration) []string {
	t.Helper()
	for name, c := range w.changed {
		w.changed[name] = change{due: c.due.Add(-d), broken: c.broken}
	}
	if !w.goneDue.IsZero() {
		w.goneDue = w.goneDue.Add(-d)
	}
	w.calls = nil
	w.apply(t.Context())
	return w.calls
}

// Workflows are removed when nothing has changed for a while: a copy of files goes on, and a file that is
// renamed comes back.
func TestFileWatcher_RemovesAfterTheLastEvent(t *testing.T) {
	t.Parallel()
	w := newWatching(t)
	w.event(fsnotify.Remove, "a.json")
	require.Equal(t, []string{"a.json"}, w.pass(t, time.Second))
	for range 5 { // other files, temporary ones and files of other kinds count
		w.event(fsnotify.Create, "b.json")
		require.Equal(t, []string{"b.json"}, w.pass(t, time.Second))
		w.event(fsnotify.Write, "c.json.tmp")
		require.Empty(t, w.pass(t, time.Second))
		w.event(fsnotify.Create, "README.md")
		require.Empty(t, w.pass(t, time.Second))
		w.event(fsnotify.Chmod, "README.md")
	}
	require.Equal(t, []string{"removeGone"}, w.pass(t, goneTime))
	require.Empty(t, w.pass(t, time.Hour), "once")
}

// Missing files come before those that may have their content.
func TestFileWatcher_AppliesARenameInOrder(t *testing.T) {
	t.Parallel()
	w := newWatching(t)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "a.json"), []byte("{}"), 0o600))
	w.event(fsnotify.Rename, "z.json")
	w.event(fsnotify.Create, "a.json")
	require.Equal(t, []string{"z.json", "a.json"}, w.pass(t, settleTime))
	require.Equal(t, []string{"removeGone"}, w.pass(t, goneTime))
}

// A file that may be half written can define the workflow that is missing.
func TestFileWatcher_WaitsForUnfinishedFiles(t *testing.T) {
	t.Parallel()
	w := newWatching(t)
	half := true
	w.load = func(_ context.Context, file string) (string, bool) {
		w.calls = append(w.calls, filepath.Base(file))
		if half {
			return "not JSON", true
		}
		return "", false
	}
	w.event(fsnotify.Create, "b.json")
	require.Equal(t, []string{"b.json"}, w.pass(t, settleTime))
	require.Empty(t, w.pass(t, brokenTime-100*time.Millisecond))
	half = false
	require.Equal(t, []string{"b.json"}, w.pass(t, 200*time.Millisecond))
	require.Equal(t, []string{"removeGone"}, w.pass(t, goneTime))
}

// A host reads its files after it has begun to watch them.
func TestFileWatcher_AppliesWhatChangedWhileFilesWereRead(t *testing.T) {
	t.Parallel()
	dir, loaded, applied := t.TempDir(), make(chan struct{}), make(chan string, 1)
	w := &fileWatcher{
		log: slog.New(slog.DiscardHandler), workflows: []string{dir}, loaded: loaded,
		load: func(_ context.Context, file string) (string, bool) {
			applied <- filepath.Base(file)
			return "", false
		},
		removeGone: func(context.Context) {},
	}
	w.open()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.json"), []byte("{}"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.run(ctx) }()
	close(loaded)
	require.Equal(t, "a.json", <-applied)
	cancel()
	require.NoError(t, <-ended)
}
