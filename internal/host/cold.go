package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/internal/runlog/cold/sqlite"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/workflow"
)

// envNeverOverwrite is a setting for tests: no frame of a sealed run is overwritten. It needs --test-seams.
const envNeverOverwrite = "OPENWOP_TEST_NEVER_OVERWRITE"

// coldFile is the file of the cold store in a data directory. lackingFile is there while it lacks sealed
// runs.
const (
	coldFile    = "cold.db"
	lackingFile = "cold.lacking"
)

// runLog is the run log as services use it.
type runLog interface {
	cold.Hot
	Lost() uint64
}

// tiers are the cold store of a host, and the log that reads from both; zero without one.
type tiers struct {
	store cold.Store
	// file: the store has one, which a backup needs.
	file bool
	// lacking: the store lacks sealed runs of the log.
	lacking bool

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
func hotWindow(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := workflow.ParseRetention(text)
	if err != nil {
		return 0, fmt.Errorf("--hot-window %q: %w", text, err)
	}
	return d, nil
}

// guard refuses a hot window for a log that forbids removal.
func (c *core) guard(window time.Duration) error {
	if window > 0 && !c.stores.Log.Erasable() {
		return exit.Usagef("--hot-window: the run log was created by a build that forbids the removal of frames; " +
			"see \"A log of an earlier build\" in docs/erasure.md, or leave the flag out")
	}
	return nil
}

// lossStore is a cold store that detects lost runs.
type lossStore interface {
	// Knows reports whether the store has, or had, the object of a run.
	Knows(ctx context.Context, run subject.Run) (bool, error)
	// GiveUp records that runs which were sealed up to a position are not expected in the store; GivenUp
	// returns the last one.
	GiveUp(ctx context.Context, until uint64) error
	GivenUp(ctx context.Context) (uint64, error)
}

// lackingMessage is the message of a cold store that lacks sealed runs.
const lackingMessage = "the cold store lacks sealed runs: they cannot be read, and no further run is sealed"

// openCold opens the cold store, if there is one or runs are to be moved there. A store that lacks sealed
// runs is neither created nor written: the operator restores it, or gives the runs up.
func (h *Host) openCold(ctx context.Context) error {
	window, err := hotWindow(h.opts.Log.HotWindow)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	if err := h.guard(window); err != nil {
		return err
	}
	t, path := &h.tiers, filepath.Join(h.opts.DataDir, coldFile)
	store, err := h.openColdFile(ctx, path)
	if err != nil {
		return err
	}
	if t.lacking, err = h.lacksSealed(ctx, store); err != nil {
		return err
	}
	switch give := h.opts.Log.GiveUpSealed; {
	case give && !t.lacking:
		return exit.Usagef("--give-up-lost-runs: the cold store has all sealed runs; leave the flag out")
	case give:
		if store, err = h.giveUp(ctx, store, path); err != nil {
			return err
		}
		t.lacking = false
	case t.lacking:
		h.log.Error(lackingMessage, "file", path, "remedy",
			"stop the host and restore the file from the newest backup; if there is none, start the host once with --give-up-lost-runs")
	case store == nil && window == 0:
		return nil
	case store == nil:
		if store, err = h.openSQLite(ctx, path); err != nil {
			return err
		}
	}
	if err := h.noteLacking(h.opts.Log.GiveUpSealed); err != nil {
		return err
	}
	h.useCold(store, window)
	return nil
}

// noteLacking notes that the cold store lacks sealed runs. A read model that was filled then has them as
// damaged, so it is filled again once the store has them. That of runs that are given up stays: it is all
// that is left of them.
func (h *Host) noteLacking(gaveUp bool) error {
	note := filepath.Join(h.opts.DataDir, lackingFile)
	if h.tiers.lacking {
		if err := os.WriteFile(note, nil, 0o600); err != nil {
			return fmt.Errorf("note that the cold store lacks runs: %w", err)
		}
		return nil
	}
	if _, err := os.Stat(note); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var models []string
	if !gaveUp {
		var err error
		if models, err = filepath.Glob(filepath.Join(h.opts.DataDir, readModelFile+"*")); err != nil {
			return fmt.Errorf("files of the read model: %w", err)
		}
		h.log.Warn("the read model is filled again: the cold store has the sealed runs that it lacked")
	}
	for _, file := range append(models, note) { // the note goes last
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("fill the read model again: %w", err)
		}
	}
	return nil
}

// openColdFile opens the file of the cold store; nil if there is none.
func (h *Host) openColdFile(ctx context.Context, path string) (*sqlite.Store, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // see above
	}
	return h.openSQLite(ctx, path)
}

func (h *Host) openSQLite(ctx context.Context, path string) (*sqlite.Store, error) {
	store, err := sqlite.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	h.later(func() { _ = store.Close() })
	reserveMemory(sqlite.OutsideBytes)
	return store, nil
}

// lacksSealed reports whether a store, which may be nil, lacks sealed runs of the log. One that is damaged
// may have them.
func (h *Host) lacksSealed(ctx context.Context, store *sqlite.Store) (bool, error) {
	if store == nil {
		return h.stores.Log.LacksSealed(ctx, 0, func(context.Context, subject.Run) (bool, error) { return false, nil })
	}
	return lacksSealed(ctx, h.stores.Log, store)
}

// lacksSealed reports whether a store lacks sealed runs of the log. One that is damaged may have them.
func lacksSealed(ctx context.Context, log *jetstream.Log, store lossStore) (bool, error) {
	until, err := store.GivenUp(ctx)
	if err == nil {
		var lacks bool
		if lacks, err = log.LacksSealed(ctx, until, store.Knows); err == nil {
			return lacks, nil
		}
	}
	if errors.Is(err, cold.ErrDamaged) {
		return false, nil // each run that cannot be read is reported
	}
	return false, err
}

// giveUp makes a store that expects no sealed run which it lacks.
func (h *Host) giveUp(ctx context.Context, store *sqlite.Store, path string) (*sqlite.Store, error) {
	if store == nil {
		var err error
		if store, err = h.openSQLite(ctx, path); err != nil {
			return nil, err
		}
	}
	return store, giveUpSealed(ctx, h.stores.Log, store, h.log)
}

// giveUpSealed makes a store expect no sealed run which it lacks.
func giveUpSealed(ctx context.Context, log *jetstream.Log, store lossStore, to *slog.Logger) error {
	until, err := log.NewestSeal(ctx)
	if err != nil {
		return err
	}
	to.Error("sealed runs that the cold store lacks are given up; leave --give-up-lost-runs out at the next start")
	return store.GiveUp(ctx, until)
}

// useCold reads sealed runs from a store, and seals others unless the store lacks runs.
func (h *Host) useCold(store *sqlite.Store, window time.Duration) {
	t := &h.tiers
	t.faults, t.file = cold.NewFaults(h.log), store != nil
	switch {
	case !t.lacking:
		t.store = store
	case store == nil:
		t.store = cold.Incomplete{}
	default:
		t.store = cold.Incomplete{Store: store}
	}
	t.log = cold.NewLog(h.stores.Log, t.store, func(ctx context.Context, pos uint64) error { return h.events.Past(ctx, pos) }, t.faults)
	if !t.lacking && (window > 0 || h.stores.Log.Erasable()) { // without a window it finishes what was begun
		t.sealer = cold.NewSealer(window, cold.SealerDeps{
			Log: h.stores.Log, Store: t.store, Past: h.readersPast, Clock: time.Now, Logger: h.log,
			NeverOverwrite: h.opts.Public.TestSeams && os.Getenv(envNeverOverwrite) == "true",
		})
	}
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
func (c *core) coldCollectors() []prometheus.Collector {
	if c.tiers.store == nil {
		return nil
	}
	return []prometheus.Collector{cold.NewCollector(c.tiers.store, c.tiers.faults, c.tiers.sealer, func(ctx context.Context) (uint64, error) {
		bytes, _, err := c.stores.Log.State(ctx)
		return bytes, err
	})}
}

// unreadable reports that a sealed run cannot be read.
func (c *core) unreadable(run subject.Run, err error) {
	if c.tiers.faults != nil {
		c.tiers.faults.Unreadable(run, err)
	}
}
