// Package logverify reads a whole run log and checks that it is unchanged: each frame matches its
// hash, the frames of each run are consecutive, nothing follows the end of a run, and the events
// follow the protocol's rules.
package logverify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/internal/runcheck"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Rule is a verified property.
type Rule string

// The rules.
const (
	Frames Rule = "frames"
	Chain  Rule = "chain"
	End    Rule = "end"
	Events Rule = "events"
	// Cold is a rule of the cold store. It is not in Rows: the log may be verified without it.
	Cold Rule = "cold-store"
)

// Rows describes each rule, in the order of the report.
func Rows() [][2]string {
	return [][2]string{
		{string(Frames), "every frame exists, except those of erased and sealed runs, is readable and matches its hash"},
		{string(Chain), "the frames of each run are chained by hash and sequence"},
		{string(End), "no frame follows the end of a run"},
		{string(Events), "the events of each run pass the checks of run verify"},
	}
}

// Finding is a violation of a rule.
type Finding struct {
	Rule Rule `json:"check"`
	// Pos is the position in the log; 0 if unknown.
	Pos    uint64 `json:"position,omitempty"`
	Tenant string `json:"tenant,omitempty"`
	RunID  string `json:"runId,omitempty"`
	// Message contains no event content, because the frame cannot be trusted.
	Message string `json:"message"`
}

// Report is the result of a verification.
type Report struct {
	Frames, Events, Runs int
	// Erased counts erased runs. Runs does not include them.
	Erased int
	// Sealed counts the runs whose frames are in the cold store. Runs includes them if it was read.
	Sealed int
	// Last is the position up to which the log was read.
	Last     uint64
	Findings []Finding
	// More counts the findings beyond the first MaxFindings.
	More int
}

// MaxFindings limits the reported findings: a truncated log has as many as frames.
const MaxFindings = 1000

// silence is how long the log may deliver nothing before its end.
const silence = 30 * time.Second

var (
	errDone   = errors.New("read to the end")
	errSilent = fmt.Errorf("%w: no frame for %s before the end of the log", runlog.ErrUnavailable, silence)
)

// reader follows a log. Its methods are called by one goroutine.
type reader struct {
	report Report
	runs   map[runKey]*run
	stop   context.CancelCauseFunc
	// pos is the position of the last frame, damaged the later positions that were skipped.
	pos     uint64
	damaged map[uint64]bool
	// gaps are the missing positions, erased those that belonged to erased or sealed runs, in order.
	// sealed are the sealed runs that are not erased.
	gaps, erased []runlog.Span
	sealed       map[runKey]*frame.Frame
}

type runKey struct{ tenant, id string }

func (k runKey) compare(other runKey) int {
	return cmp.Or(strings.Compare(k.tenant, other.tenant), strings.Compare(k.id, other.id))
}

// run is the verification state of a run.
type run struct {
	chain frame.Chain
	// broken: a frame is missing, so later frames do not match either
	broken, ended bool
	// events checks the events until the run ends; nil stops checking.
	events *runcheck.Check
}

// ReadCold reads the frames of a sealed run. Errors: frame.ErrDamaged if it has none that are intact.
type ReadCold func(ctx context.Context, run subject.Run) ([]*frame.Frame, error)

// Verify reads a log from its beginning to its end at the time of the call, and then the sealed runs from
// the cold store; nil leaves them out. The log may grow during the call.
func Verify(ctx context.Context, log runlog.Follower, cold ReadCold) (*Report, error) {
	end, err := log.End(ctx)
	if err != nil {
		return nil, err
	}
	r := &reader{runs: map[runKey]*run{}, damaged: map[uint64]bool{}, sealed: map[runKey]*frame.Frame{}}
	r.report.Last = end
	if end == 0 {
		return &r.report, nil
	}
	ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	quiet := time.AfterFunc(silence, func() { r.stop(errSilent) })
	defer quiet.Stop()
	err = log.Follow(ctx, 0, func(batch []*frame.Frame) error {
		quiet.Reset(silence)
		for _, f := range batch {
			if f.Pos > end {
				return errDone
			}
			r.follows(f.Pos)
			r.take(f)
		}
		if batch[len(batch)-1].Pos == end {
			return errDone
		}
		return nil
	}, func(run subject.Run, pos uint64, err error) {
		r.damaged[pos] = true
		r.found(Finding{Rule: Frames, Pos: pos, Message: err.Error()})
		if pos >= end {
			r.stop(errDone)
		}
	})
	if cause := context.Cause(ctx); errors.Is(err, context.Canceled) && cause != nil {
		err = cause
	}
	if !errors.Is(err, errDone) {
		return nil, err
	}
	r.follows(end + 1)
	r.settleGaps()
	for _, key := range slices.SortedFunc(maps.Keys(r.runs), runKey.compare) {
		r.settle(key, r.runs[key])
	}
	r.report.Runs, r.report.Sealed = len(r.runs), len(r.sealed)
	if cold != nil {
		err = r.readSealed(ctx, cold)
	}
	if err != nil && !errors.Is(err, errDone) {
		return nil, err
	}
	return &r.report, nil
}

func (r *reader) found(f Finding) {
	if len(r.report.Findings) >= MaxFindings {
		r.report.More++
		return
	}
	r.report.Findings = append(r.report.Findings, f)
}

// follows notes the missing frames before a position.
func (r *reader) follows(pos uint64) {
	from := r.pos + 1
	for _, at := range slices.Sorted(maps.Keys(r.damaged)) {
		if at < from || at >= pos {
			continue
		}
		if at > from {
			r.gaps = append(r.gaps, runlog.Span{From: from, To: at - 1})
		}
		from = at + 1
		delete(r.damaged, at)
	}
	if from < pos {
		r.gaps = append(r.gaps, runlog.Span{From: from, To: pos - 1})
	}
	r.pos = pos
}

// settleGaps reports missing frames. Only frames of erased and sealed runs are removed from a log, and
// the mark of the run lists them.
func (r *reader) settleGaps() {
	for _, g := range runlog.Except(r.gaps, r.erased) {
		r.found(Finding{
			Rule:    Frames,
			Pos:     g.From,
			Message: fmt.Sprintf("%d of the frames at %d to %d are missing", g.To-g.From+1, g.From, g.To),
		})
	}
}

// remove takes the mark of an erased or sealed run. What is left of its frames is the beginning of the
// run.
func (r *reader) remove(f *frame.Frame, key runKey) {
	removed, err := f.Removed()
	if err != nil {
		r.found(Finding{Rule: Frames, Pos: f.Pos, Tenant: key.tenant, RunID: key.id, Message: err.Error()})
		return
	}
	for _, p := range removed {
		r.erased = append(r.erased, runlog.Span{From: p[0], To: p[1]})
	}
	if f.Kind == subject.Seal {
		r.sealed[key] = f
	} else {
		r.report.Erased++
		delete(r.sealed, key)
	}
	delete(r.runs, key)
	r.report.Findings = slices.DeleteFunc(r.report.Findings, func(v Finding) bool {
		return v.Tenant == key.tenant && v.RunID == key.id
	})
}

// readSealed checks the sealed runs.
func (r *reader) readSealed(ctx context.Context, cold ReadCold) error {
	for _, key := range slices.SortedFunc(maps.Keys(r.sealed), runKey.compare) {
		seal := r.sealed[key]
		frames, err := cold(ctx, seal.Run)
		if err == nil && (len(frames) == 0 || frames[len(frames)-1].Hash != seal.Prev) {
			err = fmt.Errorf("%w: the cold store has another end of the run than the log", frame.ErrDamaged)
		}
		switch {
		case errors.Is(err, frame.ErrDamaged):
			r.found(Finding{Rule: Cold, Pos: seal.Pos, Tenant: key.tenant, RunID: key.id, Message: err.Error()})
			continue
		case err != nil:
			return err
		}
		r.report.Runs++
		for _, f := range frames {
			r.take(f)
		}
	}
	return nil
}

// take checks a frame that matches its hash.
func (r *reader) take(f *frame.Frame) {
	r.report.Frames++
	key := runKey{f.Run.Tenant, f.Run.RunID}
	if f.Kind == subject.Seal || f.Kind == subject.Erase {
		r.remove(f, key)
		return
	}
	at := r.runs[key]
	if at == nil {
		at = &run{events: runcheck.New(runcheck.Source{})}
		r.runs[key] = at
	}
	finding := func(rule Rule, format string, args ...any) {
		r.found(Finding{Rule: rule, Pos: f.Pos, Tenant: key.tenant, RunID: key.id, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case at.broken:
		return
	case at.ended:
		finding(End, "a frame of kind %s follows the end of the run", f.Kind)
		return
	}
	if err := at.chain.Follow(f); err != nil {
		at.broken, at.events = true, nil
		finding(Chain, "%v", err)
		return
	}
	events, err := f.Events()
	if err != nil || len(events) != f.Last-f.First+1 {
		finding(Chain, "its events are not those of its range, %d to %d", f.First, f.Last)
		return
	}
	r.report.Events += len(events)
	for _, e := range events {
		at.events.Add(e)
	}
	if f.Kind == subject.End {
		at.ended = true
		r.settle(key, at)
	}
}

// settle reports the result of a run's event checks.
func (r *reader) settle(key runKey, at *run) {
	if at.events == nil {
		return
	}
	for _, f := range at.events.Findings() {
		where := ""
		if f.Sequence != nil {
			where = fmt.Sprintf("event %d: ", *f.Sequence)
		}
		r.found(Finding{Rule: Events, Tenant: key.tenant, RunID: key.id, Message: where + string(f.Rule) + ": " + f.Message})
	}
	at.events = nil
}
