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

// list is a growing list that several processes write. Its records are named by
// the number of their first element, and each is written only where there is none:
// so elements are numbered without a gap, and none is lost.
type list struct {
	name  string // of its records, ending in "."
	limit int    // of elements
	// count tells how many elements a record holds.
	count func(record []byte) (int, error)
	// from is where to begin looking for the end; 0: wherever it was last.
	from int
	// stop is asked about each record that somebody else has written from there on:
	// true leaves the list as it is. Nil: never.
	stop func(record []byte) (bool, error)
}

// at names the record that begins with the nth element; names sort as numbers do.
func (l list) at(n int) string { return fmt.Sprintf("%s%08d", l.name, n) }

// extend writes a record behind the last one. render is told the number of its
// first element, and gives the record and how many elements it holds; it is called
// again when somebody else was faster.
func (s *Shared) extend(ctx context.Context, tenant string, l list, render func(first int) ([]byte, int, error)) error {
	now, err := s.space(tenant).Now(ctx)
	if err != nil {
		return reached(err)
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
			return fault.New(fault.PayloadTooLarge, "the test log of a run takes at most %d entries, of at most %d bytes at once; reset it", l.limit, maxRecord)
		}
		err = now.Update(ctx, l.at(end), record, 0)
		if err == nil {
			s.ends.put(name, end+n)
			return nil
		}
		if !errors.Is(err, kv.ErrConflict) {
			return reached(err)
		}
		taken, stop, err := l.behind(ctx, now, end)
		if err != nil || stop {
			return err
		}
		end += taken
	}
}

// behind tells how many elements the record at end holds, and whether to stop at it.
func (l list) behind(ctx context.Context, now epoch.Records, end int) (n int, stop bool, err error) {
	record, _, err := now.Get(ctx, l.at(end))
	if err != nil {
		return 0, false, reached(err)
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

// maxEnds bounds the lists whose end is remembered.
const maxEnds = 1_000

// ends remembers where lists ended, so that a writer need not go along all of
// one. An end that others have moved on is only a later start. The zero value is
// ready.
type ends struct {
	mu sync.Mutex // guards at
	at map[string]int
}

func (e *ends) get(name string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at[name]
}

func (e *ends) put(name string, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.at == nil || len(e.at) >= maxEnds {
		e.at = map[string]int{}
	}
	e.at[name] = max(n, e.at[name])
}
