package retention_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/retention"
)

var quiet = slog.New(slog.DiscardHandler)

const oneDay = 24 * time.Hour

// table is an index of ended runs and the eraser of them.
type table struct {
	flows []retention.Flow // in order
	ends  map[string][]retention.End
	// refuse are the errors of runs.
	refuse  map[string]error
	expired []string
	pages   int
	// away is the error of the log.
	away error
	// prepare archives a run; nil means there is no archive.
	prepare func(ctx context.Context, run subject.Run) error
	// settled reports whether a run was removed; nil means it was.
	settled func(run subject.Run) (bool, error)
	// logged is what the sweeper has logged.
	logged bytes.Buffer
}

// add adds a run that ended some days before start.
func (x *table) add(tenant, workflow, id string, days int) {
	at := start.Add(-time.Duration(days) * oneDay)
	key := tenant + "/" + workflow
	if x.ends == nil {
		x.ends = map[string][]retention.End{}
	}
	if len(x.ends[key]) == 0 {
		x.flows = append(x.flows, retention.Flow{Tenant: tenant, WorkflowID: workflow, Oldest: at})
	}
	x.ends[key] = append(x.ends[key], retention.End{CompletedAt: wire.FormatTime(at), RunID: id})
	slices.SortFunc(x.ends[key], compare)
	slices.SortFunc(x.flows, func(a, b retention.Flow) int {
		return strings.Compare(a.Tenant+"/"+a.WorkflowID, b.Tenant+"/"+b.WorkflowID)
	})
	for i, f := range x.flows {
		x.flows[i].Oldest, _ = time.Parse(time.RFC3339, x.ends[f.Tenant+"/"+f.WorkflowID][0].CompletedAt)
	}
}

func compare(a, b retention.End) int {
	return strings.Compare(a.CompletedAt+a.RunID, b.CompletedAt+b.RunID)
}

func (x *table) Flows(_ context.Context, after retention.Flow, limit int) ([]retention.Flow, error) {
	rest := slices.DeleteFunc(slices.Clone(x.flows), func(f retention.Flow) bool {
		return f.Tenant+"/"+f.WorkflowID <= after.Tenant+"/"+after.WorkflowID
	})
	return rest[:min(limit, len(rest))], nil
}

func (x *table) Ended(_ context.Context, of retention.Flow, before time.Time, after retention.End, limit int) ([]retention.End, error) {
	x.pages++
	rest := slices.DeleteFunc(slices.Clone(x.ends[of.Tenant+"/"+of.WorkflowID]), func(e retention.End) bool {
		return e.CompletedAt >= wire.FormatTime(before) || compare(e, after) <= 0
	})
	return rest[:min(limit, len(rest))], nil
}

func (x *table) Count(_ context.Context, of retention.Flow, before ...time.Time) ([]int64, error) {
	counts := make([]int64, len(before))
	for i, at := range before {
		for _, e := range x.ends[of.Tenant+"/"+of.WorkflowID] {
			if e.CompletedAt < wire.FormatTime(at) {
				counts[i]++
			}
		}
	}
	return counts, nil
}

func (x *table) Prepare(ctx context.Context, run subject.Run) error {
	if x.prepare == nil {
		return nil
	}
	return x.prepare(ctx, run)
}

func (x *table) Expire(_ context.Context, run subject.Run) error {
	if err := x.refuse[run.RunID]; err != nil {
		return err
	}
	x.expired = append(x.expired, run.RunID)
	return nil
}

func (x *table) Settled(_ context.Context, run subject.Run) (bool, error) {
	if x.settled == nil {
		return true, nil
	}
	return x.settled(run)
}

// days is a policy of whole days by name; 0 means without limit.
type days map[string]int

func (d days) of(name string) (time.Duration, bool) {
	n, ok := d[name]
	return time.Duration(n) * oneDay, ok
}

func sweeper(x *table, installation int, tenants, workflows days) *retention.Sweeper {
	p := retention.Policies{
		Default: time.Duration(installation) * oneDay,
		Tenant:  tenants.of,
		Workflow: func(_ context.Context, _, id string, _ time.Duration) (time.Duration, bool, error) {
			if id == "unreadable" {
				return 0, false, errors.New("damaged")
			}
			keep, ok := workflows.of(id)
			return keep, ok, nil
		},
	}
	clock := retention.NewClock(kvmemory.New(), func() time.Time { return start },
		func(context.Context) (uint64, time.Time, error) { return 1000, start, x.away })
	log := slog.New(slog.NewTextHandler(&x.logged, nil))
	s := retention.NewSweeper(retention.Config{Rate: 1e6}, p, clock, x, x, func() bool { return true }, log)
	s.Own(true)
	return s
}

func TestSweep_ErasesWhatIsOver(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		installation       int
		tenants, workflows days
		want               []string
	}{
		"unlimited":                    {},
		"of the installation":          {installation: 30, want: []string{"a40", "b40", "o40"}},
		"exactly":                      {installation: 40},
		"of a tenant":                  {installation: 30, tenants: days{"acme": 5}, want: []string{"a40", "a10", "b40", "b10", "o40"}},
		"a tenant without limit":       {installation: 30, tenants: days{"acme": 0}, want: []string{"o40"}},
		"of a workflow":                {tenants: days{"acme": 0}, workflows: days{"a": 5}, want: []string{"a40", "a10", "o40", "o10"}},
		"a workflow without limit":     {installation: 5, workflows: days{"a": 0}, want: []string{"b40", "b10"}},
		"a workflow that keeps longer": {installation: 5, workflows: days{"a": 30, "b": 365}, want: []string{"a40", "o40"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := &table{}
			x.add("acme", "a", "a10", 10)
			x.add("acme", "a", "a40", 40)
			x.add("acme", "a", "a1", 1)
			x.add("acme", "b", "b10", 10)
			x.add("acme", "b", "b40", 40)
			x.add("other", "a", "o10", 10)
			x.add("other", "a", "o40", 40)
			x.add("other", "unreadable", "u40", 40)
			_, err := sweeper(x, tt.installation, tt.tenants, tt.workflows).Sweep(t.Context())
			require.NoError(t, err)
			require.Equal(t, tt.want, x.expired)
		})
	}
}

// Runs with a hold do not keep the others, and are looked at once in a sweep.
func TestSweep_PassesRunsThatStay(t *testing.T) {
	t.Parallel()
	x := &table{refuse: map[string]error{}}
	for i := range 250 {
		id := wire.FormatTime(start.Add(time.Duration(i) * time.Second))
		x.add("acme", "a", id, 40)
		if i < 220 {
			x.refuse[id] = fault.New(fault.Conflict, "held")
		}
	}
	x.refuse[x.ends["acme/a"][230].RunID] = fault.NoRun() // the read model is behind
	s := sweeper(x, 30, nil, nil)
	pause, err := s.Sweep(t.Context())
	require.NoError(t, err)
	require.Len(t, x.expired, 29)
	require.Equal(t, int64(29), s.Stats().Expired)
	require.Equal(t, 3, x.pages)
	require.Equal(t, time.Minute, pause)
}

func TestSweep_EndsWithTheLog(t *testing.T) {
	t.Parallel()
	x := &table{refuse: map[string]error{"a": fault.New(fault.ServiceUnavailable, "away")}}
	x.add("acme", "w", "a", 40)
	x.add("acme", "w", "b", 40)
	s := sweeper(x, 30, nil, nil)
	_, err := s.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, x.expired)
	x.away = fault.New(fault.ServiceUnavailable, "the log is away")
	_, err = sweeper(x, 30, nil, nil).Sweep(t.Context()) // a process that tries the run immediately
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	require.Equal(t, []string{"b"}, x.expired)
}

// No run of such a log can be removed.
func TestSweep_EndsWithALogThatKeepsAll(t *testing.T) {
	t.Parallel()
	x := &table{refuse: map[string]error{"a": fault.New(fault.CapabilityNotProvided, "permanent")}}
	x.add("acme", "w", "a", 40)
	x.add("acme", "w", "b", 40)
	_, err := sweeper(x, 30, nil, nil).Sweep(t.Context())
	require.Equal(t, fault.CapabilityNotProvided, fault.CodeOf(err))
	require.Empty(t, x.expired)
}

// A run that cannot be erased, such as one whose hold is damaged, does not keep the others.
func TestSweep_PassesRunsThatFail(t *testing.T) {
	t.Parallel()
	x := &table{refuse: map[string]error{
		"a": fault.New(fault.ServiceUnavailable, "its hold is damaged"), "c": errors.New("its parent is damaged"),
	}}
	for _, id := range []string{"a", "b", "c", "d"} {
		x.add("acme", "w", id, 40)
	}
	x.add("acme", "x", "e", 40)
	x.settled = func(run subject.Run) (bool, error) {
		if run.RunID == "d" {
			return false, errors.New("its mark is damaged")
		}
		return true, nil
	}
	s := sweeper(x, 30, nil, nil)
	_, err := s.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"b", "d", "e"}, x.expired)
	for _, id := range []string{"a", "c"} {
		require.Equal(t, 1, strings.Count(x.logged.String(), "run_id="+id+" "), "%s", &x.logged)
	}
	require.Contains(t, x.logged.String(), "kept=2")
}

// A removal that takes long does not stop the sweep, nor does it outlive the ownership.
func TestSweep_WaitsForRemovalsForATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := &table{settled: func(subject.Run) (bool, error) { return false, nil }}
		x.add("acme", "w", "a", 40)
		x.add("acme", "x", "b", 40)
		s := sweeper(x, 30, nil, nil)
		began := time.Now()
		_, err := s.Sweep(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, x.expired)
		require.InDelta(t, 20, time.Since(began).Seconds(), 1)

		x.expired, began = nil, time.Now()
		x.settled = func(subject.Run) (bool, error) {
			s.Own(false)
			return false, nil
		}
		_, err = s.Sweep(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, x.expired)
		require.Less(t, time.Since(began), time.Second)
	})
}

func TestSweep_EndsWithTheOwnership(t *testing.T) {
	t.Parallel()
	x := &table{}
	x.add("acme", "w", "a", 40)
	s := sweeper(x, 30, nil, nil)
	s.Own(false)
	_, err := s.Sweep(t.Context())
	require.NoError(t, err)
	require.Empty(t, x.expired)
	require.Nil(t, s.Totals())
}

func TestReport_CountsByAgeAndNextErasure(t *testing.T) {
	t.Parallel()
	x := &table{}
	for id, age := range map[string]int{"new": 0, "week": 8, "next": 30, "over": 31, "old": 100, "ancient": 400} {
		x.add("acme", "a", id, age)
	}
	x.add("acme", "b", "b", 2)
	x.add("zeta", "a", "theirs", 2)
	s := sweeper(x, 30, nil, days{"b": 0})
	all, more, err := retention.Report(t.Context(), x, s.Policies(), "acme", start, 10)
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, all, 2)
	a := all[0]
	require.Equal(t, int64(6), a.Runs)
	require.Equal(t, int64(3), a.Due)
	require.Equal(t, int64(1), a.NextDay)
	require.Equal(t, []int64{5, 5, 3, 2, 1}, a.Older)
	require.Equal(t, retention.Retention{Keep: 30 * oneDay, Source: retention.Installation}, a.Retention)
	require.Equal(t, retention.Retention{Source: retention.Workflow}, all[1].Retention)
	require.Zero(t, all[1].Due+all[1].NextDay)
	require.Equal(t, []retention.Age{
		{From: 0, To: 1, Runs: 1},
		{From: 1, To: 7},
		{From: 7, To: 30, Runs: 2},
		{From: 30, To: 90, Runs: 1},
		{From: 90, To: 365, Runs: 1},
		{From: 365, Runs: 1},
	}, retention.Split(a.Runs, a.Older))
	_, more, err = retention.Report(t.Context(), x, s.Policies(), "acme", start, 1)
	require.NoError(t, err)
	require.True(t, more)

	_, err = s.Sweep(t.Context())
	require.NoError(t, err)
	total := s.Totals()
	require.Equal(t, int64(8), total.Runs)
	require.Equal(t, int64(4), total.NextDay)
	require.InDelta(t, 500, total.Bytes(4), 0.1)
}
