package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/internal/runlog/cold/sqlite"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/workflow"
)

// coldFile is the file of the cold store in a data directory.
const coldFile = "cold.db"

// runLog is the run log as services use it.
type runLog interface {
	cold.Hot
	Lost() uint64
}

// tiers are the cold store of a host, and the log that reads from both; zero without one.
type tiers struct {
	store  *sqlite.Store
	log    *cold.Log
	faults *cold.Faults
	sealer *cold.Sealer // nil if the log keeps everything
}

// runs returns the run log of the process's services.
func (c *core) runs() runLog {
	if c.tiers.log != nil {
		return c.tiers.log
	}
	return c.stores.Log
}

// coldReader returns nil without a cold store.
func (c *core) coldReader() cold.Reader {
	if c.tiers.store == nil {
		return nil
	}
	return c.tiers.store
}

// logState returns the size of all runs in bytes, in both tiers, and the time of the log's newest record.
func (c *core) logState(ctx context.Context) (bytes uint64, newest time.Time, err error) {
	bytes, newest, err = c.stores.Log.State(ctx)
	if err != nil || c.tiers.store == nil {
		return bytes, newest, err
	}
	t, err := c.tiers.store.Totals(ctx)
	return bytes + uint64(max(t.Bytes, 0)), newest, err
}

// hotWindow returns how long a run stays in the log after its end; 0 means for ever.
func (o *EmbeddedLog) hotWindow() (time.Duration, error) {
	if o.HotWindow == "" {
		return 0, nil
	}
	d, err := workflow.ParseRetention(o.HotWindow)
	if err != nil {
		return 0, fmt.Errorf("--hot-window %q: %w", o.HotWindow, err)
	}
	return d, nil
}

// openCold opens the cold store, if there is one or runs are to be moved there.
func (h *Host) openCold(ctx context.Context) error {
	window, err := h.opts.Log.hotWindow()
	if err != nil {
		return fmt.Errorf("%w: %w", exit.ErrUsage, err)
	}
	path := filepath.Join(h.opts.DataDir, coldFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		sealed, err := h.stores.Log.HasSealed(ctx)
		switch {
		case err != nil:
			return err
		case sealed:
			h.log.Error("the run log has sealed runs, and the cold store is missing: they cannot be read; restore it from a backup", "file", path)
		case window == 0:
			return nil
		}
	}
	if window > 0 && !h.stores.Log.Erasable() {
		return fmt.Errorf("%w: --hot-window: the run log was created by a build that forbids the removal of frames; "+
			"see \"A log of an earlier build\" in docs/erasure.md, or leave the flag out", exit.ErrUsage)
	}
	t := &h.tiers
	t.faults = cold.NewFaults(h.log)
	if t.store, err = sqlite.Open(ctx, path); err != nil {
		return err
	}
	h.later(func() { _ = t.store.Close() })
	reserveMemory(sqlite.OutsideBytes)
	t.log = cold.NewLog(h.stores.Log, t.store, func(ctx context.Context, pos uint64) error { return h.events.Past(ctx, pos) }, t.faults)
	if window > 0 || h.stores.Log.Erasable() { // without a window it finishes what was begun
		t.sealer = cold.NewSealer(window, cold.SealerDeps{
			Log: h.stores.Log, Store: t.store, Past: h.readersPast, Clock: time.Now, Logger: h.log,
		})
	}
	return nil
}

// readersPast returns when all readers of the host that follow the log are past a position.
func (h *Host) readersPast(ctx context.Context, pos uint64) error {
	if err := h.events.Past(ctx, pos); err != nil {
		return err
	}
	return h.public.webhooks.Past(ctx, pos)
}

// startSealing starts to move ended runs to the cold store.
func (h *Host) startSealing() {
	if s := h.tiers.sealer; s != nil {
		h.group.Start(lifecycle.Part{Name: "sealing", Run: func(ctx context.Context) error {
			return lifecycle.Restart(ctx, h.log, "sealing", s.Run)
		}})
	}
}

// pauseTiers keeps runs where they are until resume is called: none is sealed, and none is erased.
func (h *Host) pauseTiers() (resume func()) {
	if h.tiers.log == nil {
		return func() {}
	}
	seal, erase := func() {}, h.tiers.log.HoldErasures()
	if h.tiers.sealer != nil {
		seal = h.tiers.sealer.Pause()
	}
	return func() { seal(); erase() }
}

// coldCollectors returns the metrics of both tiers.
func (h *Host) coldCollectors() []prometheus.Collector {
	if h.tiers.store == nil {
		return nil
	}
	return []prometheus.Collector{cold.NewCollector(h.tiers.store, h.tiers.faults, h.tiers.sealer, func(ctx context.Context) (uint64, error) {
		bytes, _, err := h.stores.Log.State(ctx)
		return bytes, err
	})}
}

// unreadable reports that a sealed run cannot be read.
func (c *core) unreadable(run subject.Run, err error) {
	if c.tiers.faults != nil {
		c.tiers.faults.Unreadable(run, err)
	}
}
