package seam

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/epoch"
	"waybill.dev/waybill/protocol/fault"
)

// list is an append-only list that several processes write. A record is named by the
// number of its first element, and is only created, never replaced. So the elements are
// numbered without a gap, and none is lost.
type list struct {
	name  string // prefix of its records, ending in "."
	limit int    // of elements
	// count returns the number of elements in a record.
	count func(record []byte) (int, error)
	// from is a position at or before the end of the list; used with stop.
	from int
	// stop is called for each record from position from on that another process has
	// written; true cancels the append. Nil never cancels.
	stop func(record []byte) (bool, error)
}

// recordName returns the name of the record that starts with element n. Names sort like
// their numbers.
func (l list) recordName(n int) string { return fmt.Sprintf("%s%08d", l.name, n) }

// appendRecord writes a record after the last one. render gets the number of the first
// element, and returns the record and its number of elements. It is called again after
// a lost race.
func (s *Shared) appendRecord(ctx context.Context, tenant string, l list, render func(first int) ([]byte, int, error)) error {
	now, err := s.records(tenant).Now(ctx)
	if err != nil {
		return storeFault(err)
	}
	name := now.Key(l.name)
	end := l.from
	if l.stop == nil {
		end = s.ends.get(name)
	}
	for {
		record, n, err := render(end)
		switch {
		case err != nil:
			return err
		case end+n > l.limit || len(record) > maxRecord:
			return fault.New(fault.PayloadTooLarge, "the test log of a run has at most %d entries, and at most %d bytes per append; reset it", l.limit, maxRecord)
		}
		err = now.Update(ctx, l.recordName(end), record, 0)
		if err == nil {
			s.ends.put(name, end+n)
			return nil
		}
		if !errors.Is(err, kv.ErrConflict) {
			return storeFault(err)
		}
		taken, stop, err := l.readTaken(ctx, now, end)
		if err != nil || stop {
			return err
		}
		end += taken
	}
}

// readTaken returns the number of elements in the record at end, and whether to stop.
func (l list) readTaken(ctx context.Context, now epoch.Records, end int) (n int, stop bool, err error) {
	record, _, err := now.Get(ctx, l.recordName(end))
	if err != nil {
		return 0, false, storeFault(err)
	}
	if n, err = l.count(record); err != nil {
		return 0, false, err
	}
	if n == 0 {
		return 0, false, fault.New(fault.InternalError, "a record of a test log is empty")
	}
	if l.stop != nil {
		stop, err = l.stop(record)
	}
	return n, stop, err
}

// maxEnds limits the lists in an endCache.
const maxEnds = 1_000

// endCache has the last known end of each list, so that a writer need not read the list
// from its start. An outdated end is only an earlier start. The zero value is ready to
// use.
type endCache struct {
	mu     sync.Mutex // guards byName
	byName map[string]int
}

func (e *endCache) get(name string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.byName[name]
}

func (e *endCache) put(name string, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byName == nil || len(e.byName) >= maxEnds {
		e.byName = map[string]int{}
	}
	e.byName[name] = max(n, e.byName[name])
}
