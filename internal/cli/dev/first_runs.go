package dev

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"time"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/host"
)

// demoRunsTimeout bounds the start of the demo runs.
const demoRunsTimeout = 10 * time.Second

// empty reports whether a data directory is new.
func empty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0
}

// startDemoRuns begins a run of each demo workflow, so that a new host has something to
// show. A key that may not start runs is no reason to stop.
func startDemoRuns(ctx context.Context, c *client.Client, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, demoRunsTimeout)
	defer cancel()
	files, err := host.DemoWorkflows()
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
