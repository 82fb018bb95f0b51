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
	"slices"
	"strings"

	"waybill.dev/waybill/examples"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/host/workflowfolder"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/workflow"
)

// workflowLoader registers definitions from files, for every tenant. It skips a file that cannot be
// used, and logs the reason.
type workflowLoader struct {
	client dispatcherv1.DispatcherClient
	log    *slog.Logger
	// dirs are the folders of definitions, and files what their files define. One goroutine at a time
	// uses them.
	dirs  []string
	files workflowFiles
	// seen are the files that this process has read. A file that it has not seen may belong to another
	// process's folder at the same path, so its workflow is removed only if alone is true: this process
	// is the whole host.
	seen  map[string]bool
	alone bool
	// builtin are the definitions that come with the host, by id.
	builtin map[string]builtin
	// notes gets what is wrong with the files, by workflow.
	notes func(byID map[string][]string)
}

// builtin is a definition that comes with the host.
type builtin struct {
	name string
	doc  []byte
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
		return l.put(ctx, "examples/"+name, "", doc)
	})
	if err != nil {
		return fmt.Errorf("load examples: %w", err)
	}
	return nil
}

// loadDirs registers the *.json files of the folders, and removes workflows whose files are gone.
func (l *workflowLoader) loadDirs(ctx context.Context) error {
	for _, dir := range l.dirs {
		files, err := workflowfolder.Files(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("--workflows %s: %w", dir, hostfile.WithoutPath(err))
		}
		for _, f := range files {
			doc, err := os.ReadFile(f) //nolint:gosec // G304: the operator names the directory
			if err != nil {
				l.log.Warn("workflow skipped", "file", f, "error", err)
				continue
			}
			if err := l.put(ctx, f, f, doc); err != nil {
				return err
			}
		}
	}
	l.removeGone(ctx)
	return nil
}

// put registers one document. It returns an error only if the dispatcher fails, not for a bad file.
// from is the file of a folder; empty for others.
func (l *workflowLoader) put(ctx context.Context, file, from string, doc []byte) error {
	if of := definedBy(doc); from == "" {
		if l.builtin == nil {
			l.builtin = map[string]builtin{}
		}
		l.builtin[of.id] = builtin{file, doc}
	}
	problem, err := l.try(ctx, file, from, doc)
	if problem != "" {
		l.log.Warn("workflow skipped", "file", file, "reason", problem)
	}
	return err
}

// reload registers a file that changed. The workflow of one that is gone stays until removeGone. problem is
// why it cannot be used; unfinished means that it may be half written.
func (l *workflowLoader) reload(ctx context.Context, file string) (problem string, unfinished bool) {
	doc, err := os.ReadFile(file) //nolint:gosec // G304: the operator names the directory
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.files.set(file, defined{})
	case err != nil:
		return hostfile.WithoutPath(err).Error(), true
	case !json.Valid(doc):
		_, found := workflow.Parse(doc)
		return firstProblem(found), true
	default:
		problem, err = l.try(ctx, file, file, doc)
		if err != nil {
			return err.Error(), true // the dispatcher may answer again
		}
	}
	l.notes(l.files.notes())
	return problem, false
}

func firstProblem(found []workflow.Problem) string {
	if len(found) == 0 {
		return "not JSON"
	}
	return found[0].Path + ": " + found[0].Message
}

// try registers one document. problem is why it cannot be used; err means that the dispatcher failed.
// If several files define a workflow, the current version is that of the last one by name.
func (l *workflowLoader) try(ctx context.Context, file, from string, doc []byte) (problem string, err error) {
	if from == "" {
		return l.register(ctx, file, "", doc)
	}
	of := definedBy(doc)
	l.files.set(from, of)
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[source(from)] = true
	if other := l.files.equal(from); other != "" {
		problem = fmt.Sprintf("%s has the same id and version, %s %s, and is used; give one of them another version, or delete it",
			other, of.id, of.version)
		if own := l.validate(ctx, doc); own != "" {
			problem += "; it has mistakes, too: " + own
		}
	} else if problem, err = l.register(ctx, file, from, doc); err != nil {
		return "", err
	}
	if problem == "" {
		for _, other := range l.files.of(of.id) {
			if other != source(from) && l.files[other].version == of.version {
				l.log.Warn("two files have the same id and version; the first by name is used: give one another version, or delete it",
					"file", from, "not_used", other, "workflow_id", of.id, "version", of.version)
			}
		}
	}
	used := l.files.used(of.id)
	if len(used) > 1 {
		l.log.Warn("several files define the same workflow; new runs use the last one", "workflow_id", of.id, "files", used)
	}
	if len(used) > 0 && used[len(used)-1] != source(from) {
		err = l.registerFile(ctx, used[len(used)-1])
	}
	return problem, err
}

// validate returns the mistakes of a document that is not registered.
func (l *workflowLoader) validate(ctx context.Context, doc []byte) string {
	res, err := l.client.PutWorkflow(ctx, &dispatcherv1.PutWorkflowRequest{Definition: doc, ValidateOnly: true})
	if err != nil {
		return "" // why it is not registered is known
	}
	var out []string
	for _, p := range res.GetProblems()[:min(len(res.GetProblems()), maxOthers)] {
		out = append(out, p.GetPath()+": "+p.GetMessage())
	}
	return strings.Join(out, "; ")
}

// registerFile registers a file that was registered before.
func (l *workflowLoader) registerFile(ctx context.Context, file string) error {
	doc, err := os.ReadFile(file) //nolint:gosec // G304: a file of the operator's directory
	if err != nil {
		l.log.Warn("workflow skipped", "file", file, "error", err)
		return nil
	}
	problem, err := l.register(ctx, file, file, doc)
	if problem != "" {
		l.log.Warn("workflow skipped", "file", file, "reason", problem)
	}
	return err
}

// register sends one document to the dispatcher.
func (l *workflowLoader) register(ctx context.Context, file, from string, doc []byte) (problem string, err error) {
	res, err := l.client.PutWorkflow(ctx, &dispatcherv1.PutWorkflowRequest{
		Definition:        doc,
		Replace:           true,
		RequireExecutable: true,
		Source:            source(from),
	})
	if err == nil {
		l.log.Debug("workflow loaded", "file", file, "workflow_id", res.GetWorkflowId(), "unchanged", res.GetUnchanged())
		if !res.GetUnchanged() {
			for _, w := range res.GetWarnings() {
				l.log.Info("workflow warning", "file", file, "path", w.GetPath(), "rule", w.GetRule(), "warning", w.GetMessage())
			}
		}
		if hidden := res.GetHiddenFrom(); len(hidden) > 0 {
			l.log.Warn("tenants do not see the workflow of this file, because they have registered their own with its id",
				"file", file, "workflow_id", res.GetWorkflowId(), "tenants", hidden[:min(len(hidden), maxOthers)], "count", len(hidden))
		}
		return "", nil
	}
	if e, ok := fault.As(err); ok && e.Code != fault.ServiceUnavailable && e.Code != fault.InternalError {
		l.files.refuse(from)
		return string(e.Code) + ": " + e.Message + otherProblems(e), nil
	}
	return "", fmt.Errorf("load workflow %s: %w", file, err)
}

// removeGone removes the shared workflows whose file is gone or defines another one now. Workflows that
// are not from these folders stay, and so do those of a folder without files: it may not be mounted.
func (l *workflowLoader) removeGone(ctx context.Context) {
	defer func() { l.notes(l.files.notes()) }()
	dirs := map[string]bool{}
	for _, dir := range l.dirs {
		dirs[source(dir)] = true
	}
	for after, more := "", len(dirs) > 0; more; {
		list, err := l.client.ListWorkflows(ctx, &dispatcherv1.ListWorkflowsRequest{Limit: 500, After: after})
		if err != nil {
			l.log.Warn("workflows whose files are gone are not removed", "error", err)
			return
		}
		more = list.GetMore()
		for _, w := range list.GetWorkflows() {
			after = w.GetWorkflowId()
			dir, mine := path.Dir(w.GetSource()), l.alone || l.seen[w.GetSource()]
			if w.GetSource() != "" && dirs[dir] && mine && l.gone(w) {
				l.remove(ctx, w, hasWorkflowFiles(dir))
			}
		}
	}
}

// hasWorkflowFiles reports whether a folder has a file of a workflow.
func hasWorkflowFiles(dir string) bool {
	files, err := workflowfolder.Files(filepath.FromSlash(dir))
	return err == nil && len(files) > 0
}

// gone reports whether the file of a workflow does not exist, or defines another one.
func (l *workflowLoader) gone(w *dispatcherv1.WorkflowSummary) bool {
	file := filepath.FromSlash(w.GetSource())
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return true
	}
	of := l.files[w.GetSource()]
	return of.id != "" && !of.refused && of.id != w.GetWorkflowId()
}

// remove removes a workflow, or registers another definition of its id. An unsure one stays.
func (l *workflowLoader) remove(ctx context.Context, w *dispatcherv1.WorkflowSummary, sure bool) {
	id, file := w.GetWorkflowId(), w.GetSource()
	log := l.log.With("file", file, "workflow_id", id)
	if !sure {
		log.Warn("the file of a registered workflow is missing from a folder without files; the workflow stays")
		return
	}
	var err error
	if used := l.files.used(id); len(used) > 0 {
		other := used[len(used)-1]
		log.Warn("the file of a workflow is gone; another file defines it", "used", other)
		err = l.registerFile(ctx, other)
	} else if b, known := l.builtin[id]; known {
		log.Warn("the file of a workflow is gone; the one that comes with the host is used")
		err = l.put(ctx, b.name, "", b.doc)
	} else {
		_, err = l.client.DeleteWorkflow(ctx, &dispatcherv1.DeleteWorkflowRequest{WorkflowId: id})
		if err == nil {
			log.Warn("workflow removed, because its file is gone; its runs continue")
		} else if fault.CodeOf(err) == fault.WorkflowNotFound { // another dispatcher has removed it
			err = nil
		}
	}
	if err != nil {
		log.Error("the file of a workflow is gone; the workflow stays", "error", err)
	}
}

// maxOthers limits the problems logged after the first, and the tenants of a message.
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

// source is the name under which a file or folder is registered; empty for none.
func source(file string) string {
	if file == "" {
		return ""
	}
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	return filepath.ToSlash(file)
}

// workflowFiles are the definitions of files by their absolute path.
type workflowFiles map[string]defined

// defined is what a file defines; zero if that is unknown. The dispatcher refused a refused one.
type defined struct {
	id, version string
	refused     bool
}

// definedBy reads what a document defines.
func definedBy(doc []byte) defined {
	var d struct{ ID, Version string }
	_ = json.Unmarshal(doc, &d) // an invalid document is reported when it is registered
	return defined{id: d.ID, version: d.Version}
}

// set records what a file defines; the zero value forgets it.
func (f *workflowFiles) set(file string, d defined) {
	if *f == nil {
		*f = workflowFiles{}
	}
	if file = source(file); d.id == "" {
		delete(*f, file)
		return
	}
	(*f)[file] = d
}

// refuse records that a file cannot be used.
func (f workflowFiles) refuse(file string) {
	if d, known := f[source(file)]; known {
		d.refused = true
		f[source(file)] = d
	}
}

// of lists the files that define a workflow, by name.
func (f workflowFiles) of(id string) []string {
	var out []string
	for file, d := range f {
		if d.id == id && !d.refused {
			out = append(out, file)
		}
	}
	slices.Sort(out)
	return out
}

// equal returns the first file by name, before a file, that has the same id and version; empty if there
// is none.
func (f workflowFiles) equal(file string) string {
	file = source(file)
	first, d := "", f[file]
	for other, o := range f {
		if o.id == d.id && o.version == d.version && !o.refused && other < file && (first == "" || other < first) {
			first = other
		}
	}
	return first
}

// used lists the files that define a workflow, by name, without those that equal an earlier one.
func (f workflowFiles) used(id string) []string {
	versions := map[string]bool{}
	return slices.DeleteFunc(f.of(id), func(file string) bool {
		version := f[file].version
		defer func() { versions[version] = true }()
		return versions[version]
	})
}

// notes says which workflows several files define.
func (f workflowFiles) notes() map[string][]string {
	out := map[string][]string{}
	for _, d := range f {
		if out[d.id] != nil {
			continue
		}
		all, used := f.of(d.id), f.used(d.id)
		if len(all) < 2 {
			continue
		}
		var parts []string
		for _, file := range all {
			part := path.Base(file) + " (version " + f[file].version
			if !slices.Contains(used, file) {
				part += ", not used"
			}
			parts = append(parts, part+")")
		}
		out[d.id] = []string{"several files define it: " + strings.Join(parts, ", ") + "; delete all but one"}
	}
	return out
}
