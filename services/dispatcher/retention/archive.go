package retention

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"waybill.dev/waybill/internal/archive"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// ErrArchiveUnavailable means that the archive of the host did not take or return a run.
var ErrArchiveUnavailable = errors.New("archive unavailable")

// Bundles exports debug bundles.
type Bundles interface {
	// Whole returns the redacted bundle of a run with all its events, or one that says that it is
	// truncated.
	Whole(ctx context.Context, run subject.Run) ([]byte, error)
}

// Archiver archives runs. It is safe for concurrent use, also by several processes.
type Archiver struct {
	log     runlog.Reader
	bundles Bundles
	// target is nil if the host has no archive.
	target archive.Target
	logger *slog.Logger
	// large limits the large runs in memory to one.
	large chan struct{}
}

// largeBytes is the size of a run's frames from which on it counts as large.
const largeBytes = 16 << 20

// NewArchiver returns an archiver; target is nil if the host has no archive.
func NewArchiver(log runlog.Reader, bundles Bundles, target archive.Target, logger *slog.Logger) *Archiver {
	return &Archiver{log, bundles, target, logger, make(chan struct{}, 1)}
}

// HasTarget reports whether the host has an archive.
func (a *Archiver) HasTarget() bool { return a.target != nil }

// Archived is the archive of a run.
type Archived struct {
	// Document is set by Build only.
	Document []byte
	// Name is its name in an archive, SHA256 the hash of the document.
	Name, SHA256 string
	// Created is false if the archive had it before.
	Created bool
}

// Build returns the archive of a run. Errors: fault.RunNotFound, fault.Conflict if it has not ended,
// fault.PayloadTooLarge, fault.LogDamaged, those of the log and the bundles.
func (a *Archiver) Build(ctx context.Context, run subject.Run) (Archived, error) {
	done, err := a.turn(ctx, run)
	if err != nil {
		return Archived{}, archiveFault(err)
	}
	defer done()
	frames, err := a.log.Run(ctx, run)
	if err == nil {
		err = frame.VerifyChain(frames)
	}
	if err != nil {
		return Archived{}, archiveFault(err)
	}
	last := frames[len(frames)-1]
	if last.Kind != subject.End {
		return Archived{}, errNotEnded()
	}
	bundle, err := a.bundles.Whole(ctx, last.Run)
	if err != nil {
		return Archived{}, err
	}
	doc, err := archive.Encode(bundle, frames)
	if errors.Is(err, archive.ErrTruncated) {
		return Archived{}, fault.New(fault.PayloadTooLarge, "the archive of the run would be larger than %d MiB, so it would not have all events", archive.MaxBytes>>20)
	}
	if err == nil {
		_, err = archive.Open(doc) // what was redacted may be an id of the run
	}
	if err != nil {
		return Archived{}, fmt.Errorf("archive of run %s: %w", last.Run.RunID, err)
	}
	return Archived{Document: doc, Name: archive.Name(last.Run, last.Hash), SHA256: digest(doc), Created: true}, nil
}

// turn waits for the end of the build of another large run, if the run is large. It keeps no frames.
func (a *Archiver) turn(ctx context.Context, run subject.Run) (done func(), err error) {
	large, err := a.isLarge(ctx, run)
	if err != nil || !large {
		return func() {}, err
	}
	select {
	case a.large <- struct{}{}:
		return func() { <-a.large }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// framesPerRead limits the frames in memory while a run is measured.
const framesPerRead = 64

// isLarge reports whether the frames of a run count as large. It reads no more of them than it needs. All
// runs of a log that has no pages count.
func (a *Archiver) isLarge(ctx context.Context, run subject.Run) (bool, error) {
	pages, ok := a.log.(runlog.Pager)
	if !ok {
		return true, nil
	}
	first, err := a.log.First(ctx, run)
	if err != nil {
		return false, err
	}
	size := 0
	for page := []*frame.Frame{first}; len(page) > 0; {
		for _, f := range page {
			size += len(f.Body)
		}
		last := page[len(page)-1]
		if size >= largeBytes || last.Kind == subject.End {
			break
		}
		if page, err = pages.Page(ctx, first.Run, last.Pos, framesPerRead); err != nil {
			return false, err
		}
	}
	return size >= largeBytes, nil
}

// Store keeps a run in the archive of the host; it is durable when Store returns. An archive that is
// there is read and checked, and replaced if it is damaged. Errors: those of Build,
// fault.CapabilityNotProvided, fault.ServiceUnavailable, which is an ErrArchiveUnavailable.
func (a *Archiver) Store(ctx context.Context, run subject.Run) (Archived, error) {
	last, err := a.check(ctx, run)
	if err != nil {
		return Archived{}, err
	}
	made, err := a.find(ctx, last)
	if err != nil || made.Name != "" {
		return made, err
	}
	if made, err = a.Build(ctx, last.Run); err != nil {
		return Archived{}, err
	}
	file, err := archive.Pack(made.Document)
	if err != nil {
		return Archived{}, err
	}
	if err := a.target.Put(ctx, made.Name, file); err != nil {
		return Archived{}, a.unavailable(ctx, err)
	}
	made.Document = nil
	return made, nil
}

// Check checks that a run could be stored, as far as that is known without its content. Errors:
// fault.CapabilityNotProvided, fault.RunNotFound, fault.Conflict, fault.LogDamaged, those of the log.
func (a *Archiver) Check(ctx context.Context, run subject.Run) (Archived, error) {
	_, err := a.check(ctx, run)
	return Archived{}, err
}

// check returns the last frame of a run that could be stored.
func (a *Archiver) check(ctx context.Context, run subject.Run) (*frame.Frame, error) {
	if a.target == nil {
		return nil, fault.New(fault.CapabilityNotProvided, "this host has no archive: its operator sets --archive")
	}
	last, err := a.log.Last(ctx, run)
	switch {
	case err != nil:
		return nil, archiveFault(err)
	case last.Kind != subject.End:
		return nil, errNotEnded()
	}
	return last, nil
}

// find returns the run's archive if there is a valid one.
func (a *Archiver) find(ctx context.Context, last *frame.Frame) (Archived, error) {
	name := archive.Name(last.Run, last.Hash)
	file, err := a.target.Get(ctx, name)
	if errors.Is(err, archive.ErrNotFound) {
		return Archived{}, nil
	}
	if err != nil {
		return Archived{}, a.unavailable(ctx, err)
	}
	got, err := archive.Read(file)
	if err == nil && (got.Run() != last.Run || got.Head() != last.Hash) {
		err = fmt.Errorf("it is of run %s", got.RunID)
	}
	if err != nil {
		a.logger.Warn("an archive is damaged and written again", "archive", a.target.String(), "name", name, "error", err)
		return Archived{}, nil
	}
	return Archived{Name: name, SHA256: digest(got.Doc)}, nil
}

// unavailable returns the error for the caller; the log has the reason.
func (a *Archiver) unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return err // the caller has gone
	}
	a.logger.Warn("the archive is unavailable", "error", err)
	return fault.New(fault.ServiceUnavailable, "the archive of the host is unavailable; try again").After(archiveRetry).
		Wrap(fmt.Errorf("%w: %w", ErrArchiveUnavailable, err))
}

// archiveRetry is the retry hint of temporary errors.
const archiveRetry = 5 * time.Second

func errNotEnded() error {
	return fault.New(fault.Conflict, "the run has not ended; archive it when it has ended")
}

func archiveFault(err error) error {
	switch {
	case errors.Is(err, runlog.ErrNotFound):
		return fault.NoRun()
	case errors.Is(err, frame.ErrDamaged):
		return fault.Damaged().Wrap(err)
	}
	return err
}

func digest(doc []byte) string {
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:])
}
