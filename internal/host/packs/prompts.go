package packs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/services/dispatcher"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

// PromptOptions configure prompt templates and their recording.
type PromptOptions struct {
	// Dir has one template per file; empty uses the templates of packs only.
	Dir string
	// Observability is how much of a prompt is recorded; empty records digests of prompts from
	// templates only.
	Observability string
}

// Validate returns all errors.
func (o *PromptOptions) Validate() (errs []error) {
	if o.Observability != "" && !prompt.Observability(o.Observability).Valid() {
		errs = append(errs, fmt.Errorf("--prompt-observability %q: want off, hashed or full", o.Observability))
	}
	return errs
}

// Config reads the templates of the folder and of the packs, and returns all errors in them.
func (o *PromptOptions) Config(packs []*pack.Pack, log *slog.Logger) (dispatcher.PromptConfig, error) {
	library, found, err := o.Check(packs)
	if err != nil {
		return dispatcher.PromptConfig{}, exit.With(exit.Usage, err)
	}
	var errs []error
	for _, f := range found {
		if f.Doubt {
			log.Warn("prompt template", "template", f.template, "from", f.source, "path", f.Path, "note", f.Message)
			continue
		}
		errs = append(errs, fmt.Errorf("%s at %q: %s", f.source, f.Path, strings.TrimSpace(f.Message)))
	}
	if err := errors.Join(errs...); err != nil {
		return dispatcher.PromptConfig{}, exit.With(exit.Usage, err)
	}
	return dispatcher.PromptConfig{Library: library, Observability: prompt.Observability(o.Observability)}, nil
}

// TemplateFinding is a mistake in the file of a prompt template, or in its name.
type TemplateFinding struct {
	// Folder is that of the file's pack; empty for a file of --prompts.
	Folder, File  string
	Path, Message string
	// Doubt marks what a host accepts.
	Doubt bool
	// source names the file in errors, template its valid template.
	source, template string
}

// Check reads the templates of the folder and of the packs, and returns the mistakes in them. The error
// means that the folder cannot be read.
func (o *PromptOptions) Check(packs []*pack.Pack) (*prompt.Library, []TemplateFinding, error) {
	l := templateLoader{from: map[*prompt.Template]TemplateFinding{}}
	if err := l.folder(o.Dir); err != nil {
		return nil, nil, fmt.Errorf("--prompts %s: %w", o.Dir, err)
	}
	for _, p := range packs {
		for _, f := range p.Prompts {
			at := TemplateFinding{Folder: p.Folder, File: f.File, source: fmt.Sprintf("--packs: pack %s (folder %s): %s", p.Name, p.Folder, f.File)}
			l.add(at, p.Name, f.Document)
		}
	}
	library, err := prompt.NewLibrary(l.templates...)
	if err != nil {
		l.addCollisions(err)
	}
	return library, l.found, nil
}

// TestSecrets returns the secrets of the test seams by id. canary is the value of the only one;
// empty without test seams.
func TestSecrets(canary string) map[string]string {
	if canary == "" {
		return nil
	}
	return map[string]string{CanarySecret: canary}
}

// templateLoader collects templates and mistakes.
type templateLoader struct {
	templates []*prompt.Template
	found     []TemplateFinding
	// from are the files of the templates.
	from map[*prompt.Template]TemplateFinding
}

// folder reads the *.json files of a folder. No link leads out of it.
func (l *templateLoader) folder(dir string) error {
	if dir == "" {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return errors.New("give an existing directory of templates")
	}
	defer func() { _ = root.Close() }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	templates := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), ".json") })
	for _, e := range entries {
		name := e.Name()
		at := TemplateFinding{File: filepath.Join(dir, name), source: fmt.Sprintf("--prompts %s: %s", dir, name)}
		switch {
		case strings.HasPrefix(name, "."):
		case strings.HasSuffix(name, ".json"):
			doc, err := readBounded(root, name)
			if err != nil {
				l.fail(at, "", err.Error())
				continue
			}
			l.add(at, prompt.HostLibrary, doc)
		case !e.IsDir() || !templates: // a folder next to templates may have their drafts
			l.doubtIgnored(root, at, e)
		}
	}
	return nil
}

// doubtIgnored reports files with templates that are not read.
func (l *templateLoader) doubtIgnored(root *os.Root, at TemplateFinding, e fs.DirEntry) {
	at.Doubt = true
	if !e.IsDir() {
		if doc, err := readBounded(root, e.Name()); err == nil && isTemplate(doc) {
			at.Message = "is not read: templates are files *.json"
			l.found = append(l.found, at)
		}
		return
	}
	files, err := fs.Glob(root.FS(), path.Join(e.Name(), "*.json"))
	if err != nil {
		return // the name of the folder is no pattern
	}
	for _, name := range files {
		if doc, err := readBounded(root, name); err == nil && isTemplate(doc) {
			at.File, at.Message = filepath.Join(filepath.Dir(at.File), name), "is not read: folders in the folder of templates are ignored; move the file up"
			l.found = append(l.found, at)
		}
	}
}

// isTemplate reports whether a text has the member that only templates have.
func isTemplate(doc []byte) bool { return strings.Contains(string(doc), "templateId") }

func readBounded(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot be read within the folder (a link must not lead out of it): %w", hostfile.WithoutPath(err))
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, prompt.MaxBytes+1)) // one more than is taken
}

func (l *templateLoader) fail(at TemplateFinding, path, message string) {
	at.Path, at.Message = path, message
	l.found = append(l.found, at)
}

// add parses a template.
func (l *templateLoader) add(at TemplateFinding, library string, doc []byte) {
	t, err := prompt.Parse(doc)
	if wrong, ok := errors.AsType[*prompt.ParseError](err); ok {
		for _, p := range wrong.Problems {
			l.fail(at, p.Path, p.Message)
		}
		return
	}
	t.Library = library
	l.from[t] = at
	for _, p := range t.Doubts() {
		doubt := at
		doubt.Doubt, doubt.template = true, t.Ref()
		l.fail(doubt, p.Path, p.Message)
	}
	l.templates = append(l.templates, t)
}

// addCollisions adds the errors of a library.
func (l *templateLoader) addCollisions(err error) {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // NewLibrary returns it unwrapped
		all = joined.Unwrap()
	}
	for _, err := range all {
		if c, ok := errors.AsType[*prompt.CollisionError](err); ok {
			l.fail(l.from[c.Template], "/templateId", c.Error())
		}
	}
}
