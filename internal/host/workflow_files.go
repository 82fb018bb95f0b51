package host

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"

	"waybill.dev/waybill/examples"
	"waybill.dev/waybill/internal/lifecycle"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
)

// workflowLoader registers definitions from files, for every tenant. It skips a file that cannot be
// used, and logs the reason.
type workflowLoader struct {
	client dispatcherv1.DispatcherClient
	log    *slog.Logger
}

// exampleWorkflow is where an example keeps its definition.
const exampleWorkflow = "workflow.json"

// loadExamples registers the examples.
func (l *workflowLoader) loadExamples(ctx context.Context) error {
	err := fs.WalkDir(examples.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Base(name) != exampleWorkflow {
			return err
		}
		doc, err := fs.ReadFile(examples.FS, name)
		if err != nil {
			return err
		}
		return l.put(ctx, "examples/"+name, doc)
	})
	if err != nil {
		return fmt.Errorf("load examples: %w", err)
	}
	return nil
}

// loadDirs registers the *.json files of directories.
func (l *workflowLoader) loadDirs(ctx context.Context, dirs []string) error {
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			return fmt.Errorf("--workflows %s: %w", dir, err)
		}
		for _, f := range files {
			if err := l.loadFile(ctx, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *workflowLoader) loadFile(ctx context.Context, file string) error {
	doc, err := os.ReadFile(file) //nolint:gosec // G304: the operator names the directory
	if err != nil {
		l.log.Warn("workflow skipped", "file", file, "error", err)
		return nil
	}
	return l.put(ctx, file, doc)
}

// put registers one document. It returns an error only if the dispatcher fails, not for a bad file.
func (l *workflowLoader) put(ctx context.Context, file string, doc []byte) error {
	res, err := l.client.PutWorkflow(ctx, &dispatcherv1.PutWorkflowRequest{
		Definition:        doc,
		Replace:           true,
		RequireExecutable: true,
	})
	if err == nil {
		l.log.Debug("workflow loaded", "file", file, "workflow_id", res.GetWorkflowId(), "unchanged", res.GetUnchanged())
		return nil
	}
	if e, ok := fault.As(err); ok && e.Code != fault.ServiceUnavailable && e.Code != fault.InternalError {
		l.log.Warn("workflow skipped", "file", file, "code", e.Code, "reason", e.Message)
		return nil
	}
	return fmt.Errorf("load workflow %s: %w", file, err)
}

// watch registers files again when they change.
func (l *workflowLoader) watch(dirs []string) lifecycle.Part {
	return lifecycle.Part{Name: "workflow watcher", Run: func(ctx context.Context) error {
		if len(dirs) == 0 {
			<-ctx.Done()
			return nil
		}
		w, err := fsnotify.NewWatcher()
		if err != nil {
			l.log.Warn("workflow directories are not watched", "error", err)
			<-ctx.Done()
			return nil
		}
		defer func() { _ = w.Close() }()
		for _, dir := range dirs {
			if err := w.Add(dir); err != nil {
				l.log.Warn("workflow directory is not watched", "dir", dir, "error", err)
			}
		}
		l.follow(ctx, w)
		return nil
	}}
}

func (l *workflowLoader) follow(ctx context.Context, w *fsnotify.Watcher) {
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			if strings.HasSuffix(e.Name, ".json") && e.Op&(fsnotify.Write|fsnotify.Create) != 0 {
				if err := l.loadFile(ctx, e.Name); err != nil {
					l.log.Warn("workflow not loaded", "file", e.Name, "error", err)
				}
			}
		case err, ok := <-w.Errors:
			if !ok {
				return
			}
			l.log.Warn("workflow directories: change lost", "error", err)
		}
	}
}
