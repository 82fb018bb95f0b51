package host

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	"waybill.dev/waybill/examples"
	"waybill.dev/waybill/protocol/pack"
)

// Folders of the demo in the examples.
const (
	demoDir  = "demo"
	demoPack = "pack"
)

// demoPacks are the packs of the demo workflows. They are loaded at every start, because a demo run
// may still be waiting.
func (o *Options) demoPacks() []pack.Source {
	if !o.DemoRuns {
		return nil
	}
	tree, err := fs.Sub(examples.Demo, path.Join(demoDir, demoPack))
	if err != nil {
		panic(fmt.Sprintf("the name of the demo's pack: %v", err)) // a constant
	}
	return []pack.Source{{Folder: demoPack, FS: tree}}
}

// DemoWorkflows are the files of the demo workflows.
func DemoWorkflows() ([]string, error) { return fs.Glob(examples.Demo, demoDir+"/*.json") }

// loadDemo registers the demo workflows.
func (o *Options) loadDemo(ctx context.Context, l *workflowLoader) error {
	if !o.DemoRuns {
		return nil
	}
	files, err := DemoWorkflows()
	if err != nil {
		return err
	}
	for _, name := range files {
		doc, err := fs.ReadFile(examples.Demo, name)
		if err != nil {
			return err
		}
		if err := l.put(ctx, "examples/"+name, "", doc); err != nil {
			return err
		}
	}
	return nil
}
