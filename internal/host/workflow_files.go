package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"

	"waybill.dev/waybill/examples"
	"waybill.dev/waybill/internal/host/hostfile"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/workflow"
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
			if isTemporary(filepath.Base(f)) {
				continue
			}
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
	problem, err := l.try(ctx, file, doc)
	if problem != "" {
		l.log.Warn("workflow skipped", "file", file, "reason", problem)
	}
	return err
}

// reload registers a file that changed. problem is why it cannot be used; unfinished means that it may
// be half written.
func (l *workflowLoader) reload(ctx context.Context, file string) (problem string, unfinished bool) {
	doc, err := os.ReadFile(file) //nolint:gosec // G304: the operator names the directory
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false // a temporary file, or deleted: the workflow stays
	case err != nil:
		return hostfile.WithoutPath(err).Error(), true
	case !json.Valid(doc):
		_, found := workflow.Parse(doc)
		return firstProblem(found), true
	}
	problem, err = l.try(ctx, file, doc)
	if err != nil {
		return err.Error(), true // the dispatcher may answer again
	}
	return problem, false
}

func firstProblem(found []workflow.Problem) string {
	if len(found) == 0 {
		return "not JSON"
	}
	return found[0].Path + ": " + found[0].Message
}

// try registers one document. problem is why it cannot be used; err means that the dispatcher failed.
func (l *workflowLoader) try(ctx context.Context, file string, doc []byte) (problem string, err error) {
	res, err := l.client.PutWorkflow(ctx, &dispatcherv1.PutWorkflowRequest{
		Definition:        doc,
		Replace:           true,
		RequireExecutable: true,
	})
	if err == nil {
		l.log.Debug("workflow loaded", "file", file, "workflow_id", res.GetWorkflowId(), "unchanged", res.GetUnchanged())
		if !res.GetUnchanged() {
			for _, w := range res.GetWarnings() {
				l.log.Info("workflow warning", "file", file, "path", w.GetPath(), "rule", w.GetRule(), "warning", w.GetMessage())
			}
		}
		return "", nil
	}
	if e, ok := fault.As(err); ok && e.Code != fault.ServiceUnavailable && e.Code != fault.InternalError {
		return string(e.Code) + ": " + e.Message + otherProblems(e), nil
	}
	return "", fmt.Errorf("load workflow %s: %w", file, err)
}

// maxOthers limits the problems logged after the first.
const maxOthers = 9

// otherProblems lists the problems of a definition after the first.
func otherProblems(e *fault.Error) string {
	all, _ := e.Details["problems"].([]any)
	var b strings.Builder
	for i := 1; i < len(all) && i <= maxOthers; i++ {
		if p, ok := all[i].(map[string]any); ok {
			fmt.Fprintf(&b, "; %v: %v", p["path"], p["message"])
		}
	}
	return b.String()
}
