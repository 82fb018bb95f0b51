package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"time"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/examples"
	"waybill.dev/waybill/protocol/pack"
)

// Places of the demo among the examples.
const (
	demoDir  = "demo"
	demoPack = "pack"
)

// demoRunsTimeout bounds the beginning of the demo runs; the host serves meanwhile.
const demoRunsTimeout = 10 * time.Second

// empty reports whether a data directory is new.
func empty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0
}

// demoPacks are the packs of the demo workflows. They are served at every start, because
// a demo run may still wait.
func (o *devOptions) demoPacks() []pack.Source {
	if !o.demoRuns {
		return nil
	}
	tree, err := fs.Sub(examples.Demo, path.Join(demoDir, demoPack))
	if err != nil {
		panic(fmt.Sprintf("the name of the demo's pack: %v", err)) // a constant
	}
	return []pack.Source{{Folder: demoPack, FS: tree}}
}

// demoWorkflows are the files of the demo workflows.
func demoWorkflows() ([]string, error) { return fs.Glob(examples.Demo, demoDir+"/*.json") }

// loadDemo registers the demo workflows.
func (o *devOptions) loadDemo(ctx context.Context, l *workflowLoader) error {
	if !o.demoRuns {
		return nil
	}
	files, err := demoWorkflows()
	if err != nil {
		return err
	}
	for _, name := range files {
		doc, err := fs.ReadFile(examples.Demo, name)
		if err != nil {
			return err
		}
		if err := l.put(ctx, "examples/"+name, doc); err != nil {
			return err
		}
	}
	return nil
}

// startDemoRuns begins a run of each demo workflow, so that a new host has something to
// show. A key that may not, such as one that only reads, is no reason to stop.
func startDemoRuns(ctx context.Context, c *client.Client, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, demoRunsTimeout)
	defer cancel()
	files, err := demoWorkflows()
	if err != nil {
		log.Warn("no demo runs", "error", err)
		return
	}
	for _, name := range files {
		id := "demo-" + strings.TrimSuffix(path.Base(name), ".json")
		if _, err := c.Start(ctx, client.StartRun{WorkflowID: id, Tags: []string{"demo"}}); err != nil && ctx.Err() == nil {
			log.Warn("a demo run was not started", "workflow_id", id, "error", err)
		}
	}
}
