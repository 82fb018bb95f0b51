package host

import (
	"cmp"
	"context"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"waybill.dev/waybill/internal/host/workflowfolder"
)

// Times of the watcher. Editors write a file in several steps: changes are applied settleTime after the
// last one. A file that does not parse may be half written: the last good version stays, and the reason
// is logged if the file is still broken after brokenTime. A missing file may come back under another
// name, or be part of a copy that goes on: workflows are removed goneTime after the last event.
const (
	settleTime = 200 * time.Millisecond
	brokenTime = 2 * time.Second
	goneTime   = 2 * time.Second
)

// fileWatcher applies changes of files while the host runs.
type fileWatcher struct {
	log *slog.Logger
	// workflows are folders of definitions, which load applies one by one. load reports why a file
	// cannot be used, and whether it may be half written.
	workflows []string
	load      func(ctx context.Context, file string) (problem string, unfinished bool)
	// removeGone removes the workflows whose files are gone.
	removeGone func(ctx context.Context)
	// folders are trees whose files belong together; reload applies all of them or none.
	folders []string
	reload  func(ctx context.Context) error

	// loaded is closed when the files have been read.
	loaded <-chan struct{}

	watcher *fsnotify.Watcher
	// changed are the changed definitions, and when each is due; the empty name is the folders.
	changed map[string]change
	// goneDue is when removeGone is due; zero without a change.
	goneDue time.Time
	// said are the last problems that were logged, by file.
	said map[string]string
}

// change is a change that is not applied yet.
type change struct {
	due time.Time
	// broken means that the file did not parse and is read for the last time.
	broken bool
}

// open starts to collect changes. It comes before the files are read: a change in between is applied,
// too.
func (w *fileWatcher) open() {
	if len(w.workflows)+len(w.folders) == 0 {
		return
	}
	var err error
	if w.watcher, err = fsnotify.NewWatcher(); err != nil {
		w.log.Warn("folders are not watched; restart the host after a change", "error", err)
		return
	}
	w.changed, w.said = map[string]change{}, map[string]string{}
	for _, dir := range w.workflows {
		w.add(dir)
	}
	for _, dir := range w.folders {
		w.addTree(dir)
	}
}

// run applies changes once the files have been read, until ctx ends.
func (w *fileWatcher) run(ctx context.Context) error {
	if w.watcher == nil {
		<-ctx.Done()
		return nil
	}
	defer func() { _ = w.watcher.Close() }()
	select {
	case <-ctx.Done():
	case <-w.loaded:
		w.follow(ctx)
	}
	return nil
}

func (w *fileWatcher) add(dir string) {
	if err := w.watcher.Add(dir); err != nil {
		w.log.Warn("folder is not watched", "dir", dir, "error", err)
	}
}

// addTree watches a folder and those in it; the operating system watches one folder at a time.
func (w *fileWatcher) addTree(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // it is gone again
		case d.IsDir() && path != dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir():
			w.add(path)
		}
		return nil
	})
}

// follow applies changes until ctx ends.
func (w *fileWatcher) follow(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		w.arm(timer)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			w.apply(ctx)
		case e, ok := <-w.watcher.Events:
			if !ok {
				return
			}
			w.note(e)
		case err, ok := <-w.watcher.Errors:
			if !ok {
				return
			}
			w.log.Warn("a change of a file may be lost; all are read again", "error", err)
			w.noteAll()
		}
	}
}

// arm sets the timer to the first change that is due.
func (w *fileWatcher) arm(timer *time.Timer) {
	first := time.Now().Add(time.Hour)
	if !w.goneDue.IsZero() && w.goneDue.Before(first) {
		first = w.goneDue
	}
	for _, c := range w.changed {
		if c.due.Before(first) {
			first = c.due
		}
	}
	timer.Reset(time.Until(first))
}

// note records a change.
func (w *fileWatcher) note(e fsnotify.Event) {
	dir, due := filepath.Dir(e.Name), time.Now().Add(settleTime)
	isWorkflows := slices.ContainsFunc(w.workflows, func(d string) bool { return filepath.Clean(d) == dir })
	if isWorkflows && e.Op != fsnotify.Chmod {
		w.goneDue = time.Now().Add(goneTime)
	}
	if workflowfolder.Temporary(filepath.Base(e.Name)) || e.Op == fsnotify.Chmod {
		return
	}
	if isWorkflows {
		if strings.HasSuffix(e.Name, ".json") && e.Has(fsnotify.Write|fsnotify.Create|fsnotify.Remove|fsnotify.Rename) {
			w.changed[e.Name] = change{due: due}
		}
	}
	if slices.ContainsFunc(w.folders, func(d string) bool { return within(d, e.Name) }) {
		if info, err := os.Stat(e.Name); err == nil && info.IsDir() && e.Has(fsnotify.Create) {
			w.addTree(e.Name)
		}
		w.changed[""] = change{due: due}
	}
}

// within reports whether a path is a folder or in it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// noteAll records a change of everything.
func (w *fileWatcher) noteAll() {
	now := time.Now()
	if len(w.folders) > 0 {
		w.changed[""] = change{due: now}
	}
	w.goneDue = now.Add(goneTime)
	for _, dir := range w.workflows {
		files, _ := workflowfolder.Files(dir) // without a folder there are none
		for _, f := range files {
			w.changed[f] = change{due: now}
		}
	}
}

// apply applies the changes that are due, the folders first: definitions depend on them. Missing files
// come before others, which may be the same files with new names.
func (w *fileWatcher) apply(ctx context.Context) {
	now := time.Now()
	names := slices.Sorted(maps.Keys(w.changed))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	for _, name := range names {
		c := w.changed[name]
		if c.due.After(now) {
			continue
		}
		delete(w.changed, name)
		if name == "" {
			w.applyFolders(ctx, c)
			continue
		}
		problem, unfinished := w.load(ctx, name)
		w.conclude(name, problem, unfinished, c)
	}
	if len(w.changed) == 0 && !w.goneDue.IsZero() && !w.goneDue.After(time.Now()) {
		w.goneDue = time.Time{}
		w.removeGone(ctx)
	} else if !w.goneDue.IsZero() && len(w.changed) > 0 { // a file that is not read yet may define a workflow
		w.goneDue = time.Now().Add(goneTime)
	}
}

// rank is the order in which changes are applied.
func rank(name string) int {
	if name == "" {
		return 0
	}
	if _, err := os.Stat(name); err != nil {
		return 1
	}
	return 2
}

func (w *fileWatcher) applyFolders(ctx context.Context, c change) {
	err := w.reload(ctx)
	if err != nil {
		w.conclude("", err.Error(), true, c)
		return
	}
	w.conclude("", "", false, c)
	for _, dir := range w.workflows { // definitions that lacked something are valid now
		files, _ := workflowfolder.Files(dir) // without a folder there are none
		for _, f := range files {
			if _, waits := w.changed[f]; !waits {
				w.changed[f] = change{due: time.Now()}
			}
		}
	}
}

// conclude logs a problem, once. A file that may be half written is read again first.
func (w *fileWatcher) conclude(name, problem string, unfinished bool, c change) {
	switch {
	case problem == "":
		w.logLoaded(name)
		delete(w.said, name)
	case unfinished && !c.broken:
		w.changed[name] = change{due: time.Now().Add(brokenTime), broken: true}
	case w.said[name] != problem:
		w.said[name] = problem
		if name == "" {
			w.log.Warn("kinds, packs and prompts are not loaded again; the previous ones stay", "reason", problem)
			return
		}
		w.log.Warn("workflow skipped; its last valid version stays", "file", name, "reason", problem)
	}
}

// logLoaded logs that the folders, or a file that had a mistake, are loaded. After a warning it logs a warning
// again: at the default level an author would not see that the mistake is mended.
func (w *fileWatcher) logLoaded(name string) {
	level := slog.LevelInfo
	if w.said[name] != "" {
		level = slog.LevelWarn
	}
	switch _, err := os.Stat(name); {
	case name == "":
		w.log.Log(context.Background(), level, "kinds, packs and prompts are loaded again")
	case w.said[name] != "" && err == nil:
		w.log.Log(context.Background(), level, "workflow loaded: it has no mistake any more", "file", name)
	}
}
