// Package storetest is the contract of the read model's store as tests. Every implementation of
// store.Store runs the same suite.
package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// Run checks the store that open returns. Each test opens its own empty store; open registers the
// cleanup.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	tests := []struct {
		name  string
		check func(t *testing.T, s store.Store)
	}{
		{"apply/begins at position zero", beginsAtZero},
		{"apply/keeps rows, frames and tail", keepsBatch},
		{"apply/changes nothing the second time", appliesOnce},
		{"apply/never takes a row back", neverGoesBack},
		{"apply/never takes the tail back", tailNeverGoesBack},
		{"apply/counts a moved run once", updatesRow},
		{"apply/keeps any text", keepsAnyText},
		{"read/keeps tenants apart", keepsTenantsApart},
		{"frames/begin with the one that holds the event", framesBegin},
		{"frames/stop at the limit", framesStopAtLimit},
		{"frames/stop at the size of a page", framesStopAtBytes},
		{"frames/come back byte for byte", framesComeBack},
		{"list/is newest first and pages without loss", listPages},
		{"list/is not disturbed by new runs", listIsStable},
		{"list/filters", listFilters},
		{"list/finds runs by their marks", listMarks},
		{"facts/come back as they were", factsComeBack},
		{"facts/are filled in rows of an older version", fillsFacts},
		{"list/sorts by each value and pages without loss", listSorts},
		{"list/sorts and filters", listSortsAndFilters},
		{"count/counts the statuses of one tenant", countsByStatus},
		{"substitutions/come newest first, of one tenant", substitutionsNewestFirst},
		{"due/gives earliest first, of all tenants", dueGivesEarliest},
		{"due/forgets a timer that has gone", dueForgets},
		{"owned/gives the runs of one process in pages", ownedPages},
		{"owned/follows a run to its next owner", ownedFollows},
		{"ended/gives the oldest run of each workflow", endedOldest},
		{"ended/gives runs in the order of their ends, in pages", endedPages},
		{"words/find runs", findsWords},
		{"words/are listed in pages", pagesWords},
		{"words/leave with their run", erasesWords},
		{"words/are bounded", boundsWords},
		{"words/of a batch are bounded", boundsWordsOfABatch},
		{"words/are left out if the database refuses them", survivesWords},
		{"words/are listed in order of distant times", ordersDistantTimes},
		{"tallies/add up by workflow and span", addsTallies},
		{"tallies/are read one by one, up to a limit", readsTalliesOneByOne},
		{"tallies/count a frame once", countsOnce},
		{"tallies/keep fine buckets for days, and daily ones", expiresTallies},
		{"tallies/keep erased runs while the tenant has others", keepsTalliesOfErased},
		{"seal/removes the frames of a run, and nothing else", sealRemovesFrames},
		{"seal/removes the frames of the same batch", sealRemovesFramesOfTheBatch},
		{"erase/removes everything of a run, and nothing else", eraseRemoves},
		{"erase/ignores an unknown run", eraseIgnoresUnknown},
		{"rebuild/empties", rebuildEmpties},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.check(t, open(t))
		})
	}
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// row returns the row of a run created n milliseconds after the epoch.
func row(id string, n int) store.Run {
	return store.Run{
		Key: store.Key{Tenant: "acme", RunID: id}, WorkflowID: "flow", Status: wire.StatusRunning,
		CreatedAt: wire.FormatTime(epoch.Add(time.Duration(n) * time.Millisecond)),
		StartedAt: wire.FormatTime(epoch), Tags: []string{"a", "b c"},
		Head: 3, Pos: uint64(n) + 10, Hash: fmt.Sprintf("hash-%d", n), New: true,
	}
}

// stored returns the row as it is read back.
func stored(r store.Run) store.Run {
	r.New = false
	return r
}

func frameOf(r store.Run, first, last int) store.Frame {
	f := store.Frame{Key: r.Key, First: first, Last: last}
	body := []byte{'['}
	for seq := first; seq <= last; seq++ {
		f.Types = append(f.Types, wire.EventLogAppended)
		if seq > first {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"sequence":%d}`, seq)
	}
	f.Body = append(body, ']')
	return f
}

func record(r store.Run) store.Frame {
	return store.Frame{
		Key: r.Key, First: store.RecordFirst, Last: store.RecordFirst, Body: fmt.Appendf(nil, `{"runId":%q}`, r.RunID),
	}
}

func apply(t *testing.T, s store.Store, pos uint64, runs []store.Run, frames ...store.Frame) {
	t.Helper()
	for _, r := range runs {
		require.LessOrEqual(t, r.Pos, pos, "a test's batch must be one that could be")
	}
	err := s.Apply(t.Context(), store.Batch{
		Runs:   runs,
		Frames: frames,
		Tail:   store.Tail{Pos: pos, Hash: fmt.Sprint("tail-", pos)},
	})
	require.NoError(t, err)
}

func ids(runs []store.Run) []string {
	var out []string
	for _, r := range runs {
		out = append(out, r.RunID)
	}
	return out
}
