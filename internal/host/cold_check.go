package host

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/internal/runlog/cold/postgres"
	"waybill.dev/waybill/internal/runlog/jetstream"
)

const (
	// coldEvery is the pause between comparisons of the cold store with the log, coldRetry while it lacks runs.
	coldEvery = 15 * time.Second
	coldRetry = 5 * time.Second
)

// coldCheck compares the cold store of a dispatcher with the run log. While the store lacks sealed runs,
// none is sealed, and no sealed run is erased: both would be lost when the database is restored.
type coldCheck struct {
	hot    *jetstream.Log
	store  *postgres.Store
	log    *cold.Log
	logger *slog.Logger

	mu sync.Mutex // held during a comparison; guards the fields below
	// giveUp: the first comparison gives up what the store lacks.
	giveUp bool
	// said is the last problem that was logged.
	said string
}

// watch compares until ctx ends.
func (c *coldCheck) watch(ctx context.Context) error {
	for ctx.Err() == nil {
		pause := coldEvery
		if c.whole(ctx) != nil {
			pause = coldRetry
		}
		lifecycle.Wait(ctx, pause)
	}
	return ctx.Err()
}

// whole returns cold.ErrLacking unless the cold store has all sealed runs of the log, and all writes that this
// process has seen.
func (c *coldCheck) whole(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	lacks, err := lacksSealed(ctx, c.hot, c.store)
	if errors.Is(err, postgres.ErrBehind) {
		c.log.Doubt()
		c.report(ctx, slog.LevelError, "the database of the cold store lacks its last writes: no run is sealed, and no sealed run is erased", err)
		return err
	}
	if err == nil && lacks && c.giveUp {
		err = giveUpSealed(ctx, c.hot, c.store, c.logger)
		lacks = false
	}
	switch {
	case err != nil:
		if ctx.Err() == nil {
			c.report(ctx, slog.LevelWarn, "the cold store cannot be compared with the run log, so no run is sealed; trying again", err)
		}
		return err
	case lacks:
		c.log.Doubt()
		c.report(ctx, slog.LevelError, lackingMessage, cold.ErrLacking)
		return cold.ErrLacking
	}
	c.giveUp, c.said = false, ""
	c.log.Trust()
	return nil
}

// report logs a problem once.
func (c *coldCheck) report(ctx context.Context, level slog.Level, what string, err error) {
	if c.said == what {
		return
	}
	c.said = what
	attrs := []any{"error", err}
	if level == slog.LevelError {
		attrs = append(attrs, "remedy", "restore the database of the cold store from the newest backup or server; if there is none, "+
			"restart the dispatchers, one of them once with --give-up-lost-runs if runs are lost")
	}
	c.logger.Log(ctx, level, what, attrs...)
}
