package packs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
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
	l := templateLoader{log: log}
	if err := l.folder(o.Dir); err != nil {
		l.errs = append(l.errs, fmt.Errorf("--prompts %s: %w", o.Dir, err))
	}
	for _, p := range packs {
		for _, f := range p.Prompts {
			l.add(fmt.Sprintf("--packs: pack %s (folder %s): %s", p.Name, p.Folder, f.File), p.Name, f.Document)
		}
	}
	library, err := prompt.NewLibrary(l.templates...)
	if err := errors.Join(append(l.errs, err)...); err != nil {
		return dispatcher.PromptConfig{}, fmt.Errorf("%w: %w", exit.ErrUsage, err)
	}
	return dispatcher.PromptConfig{Library: library, Observability: prompt.Observability(o.Observability)}, nil
}

// TestSecrets returns the secrets of the test seams by id. canary is the value of the only one;
// empty without test seams.
func TestSecrets(canary string) map[string]string {
	if canary == "" {
		return nil
	}
	return map[string]string{CanarySecret: canary}
}

// templateLoader collects templates and errors.
type templateLoader struct {
	log       *slog.Logger
	templates []*prompt.Template
	errs      []error
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
	names, err := fs.Glob(root.FS(), "*.json")
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, ".") {
			continue
		}
		at := fmt.Sprintf("--prompts %s: %s", dir, name)
		doc, err := readBounded(root, name)
		if err != nil {
			l.errs = append(l.errs, fmt.Errorf("%s: %w", at, err))
			continue
		}
		l.add(at, prompt.HostLibrary, doc)
	}
	return nil
}

func readBounded(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot be read within the folder (a link must not lead out of it): %w", hostfile.WithoutPath(err))
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, prompt.MaxBytes+1)) // one more than is taken
}

// add parses a template; at is its place, for errors.
func (l *templateLoader) add(at, library string, doc []byte) {
	t, err := prompt.Parse(doc)
	if wrong, ok := errors.AsType[*prompt.ParseError](err); ok {
		for _, p := range wrong.Problems {
			l.errs = append(l.errs, fmt.Errorf("%s at %q: %s", at, p.Path, strings.TrimSpace(p.Message)))
		}
		return
	}
	t.Library = library
	for _, note := range t.Notes() {
		l.log.Warn("prompt template", "template", t.Ref(), "from", at, "note", note)
	}
	l.templates = append(l.templates, t)
}
