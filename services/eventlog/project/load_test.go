package project_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

// shelf is a store of frames that hands out at most perPage of them.
type shelf struct {
	frames  []store.Frame
	perPage int
	err     error
	reads   int
}

func (s *shelf) Frames(_ context.Context, _ store.Key, from, limit int) ([]store.Frame, error) {
	s.reads++
	var out []store.Frame
	for _, f := range s.frames {
		if f.Last >= from && len(out) < s.perPage && limit > 0 {
			out = append(out, f)
		}
	}
	return out, s.err
}

// shelved is a run of six frames and the store that has them.
func shelved(t *testing.T) (writer *logtest.Writer, row store.Run, frames *shelf) {
	t.Helper()
	w, log := written(t)
	w.Step(logtest.RunStarted, logtest.Log("a"))
	for i := range 3 {
		w.Step(logtest.Node(fmt.Sprint("n", i))...)
	}
	w.Step(wire.Draft{Type: wire.EventVariableChanged, Payload: []byte(`{"name":"x","next":1}`)})
	s := &shelf{perPage: 2}
	for _, f := range log.Frames() {
		s.frames = append(s.frames, project.Stored(f)...)
	}
	return w, projected(t, log).Row(), s
}

func TestLoad_GivesTheRunThatWasProjected(t *testing.T) {
	t.Parallel()
	w, row, s := shelved(t)
	r, err := project.Load(t.Context(), s, row)
	require.NoError(t, err)
	require.Equal(t, row, r.Row())
	require.Equal(t, w.Head, r.Head)
	require.Equal(t, w.Snapshot(), string(r.State.SnapshotJSON()))
	require.Greater(t, s.reads, 2, "in pages")

	f := w.Frame("end", logtest.RunCompleted)
	f.Pos = w.Head.Pos + 1
	require.NoError(t, r.Apply(f), "and it goes on from there")
}

func TestLoadAt_StopsAtAnyEvent(t *testing.T) {
	t.Parallel()
	w, row, s := shelved(t)
	for seq := -1; seq < len(w.Events); seq++ {
		r, err := project.LoadAt(t.Context(), s, row, seq)
		require.NoError(t, err)
		require.Equal(t, w.SnapshotAt(seq), string(r.State.SnapshotJSON()), "as of event %d", seq)
		for next, doc := range w.Docs(seq + 1) {
			require.NoError(t, r.Replay([]byte(doc)))
			require.Equal(t, w.SnapshotAt(seq+1+next), string(r.State.SnapshotJSON()))
		}
	}
}

func TestExtend_ReadsOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	w, row, s := shelved(t)
	for seq := -1; seq < len(w.Events)-1; seq++ {
		if seq != -1 && seq != 1 && seq != 5 { // the last events of frames
			continue
		}
		r, err := project.LoadAt(t.Context(), s, row, seq)
		require.NoError(t, err)
		require.NoError(t, r.Extend(t.Context(), s, row))
		require.Equal(t, w.Snapshot(), string(r.State.SnapshotJSON()))
		require.Equal(t, w.Head, r.Head)
		reads := s.reads
		require.NoError(t, r.Extend(t.Context(), s, row))
		require.Equal(t, reads, s.reads, "nothing new, nothing read")
	}
}

func TestLoad_ReportsAStoreThatLacksFrames(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(s *shelf){
		"record":      func(s *shelf) { s.frames = s.frames[1:] },
		"middle":      func(s *shelf) { s.frames = append(s.frames[:3:3], s.frames[4:]...) },
		"end":         func(s *shelf) { s.frames = s.frames[:4] },
		"everything":  func(s *shelf) { s.frames = nil },
		"bad record":  func(s *shelf) { s.frames[0].Body = []byte(`{}`) },
		"bad frame":   func(s *shelf) { s.frames[2].Body = []byte(`{`) },
		"empty frame": func(s *shelf) { s.frames[2].Body = []byte(`[]`) },
	} {
		_, row, s := shelved(t)
		edit(s)
		_, err := project.Load(t.Context(), s, row)
		require.ErrorIs(t, err, store.ErrDamaged, name)
	}
	_, row, s := shelved(t)
	s.err = errors.New("disk on fire")
	_, err := project.Load(t.Context(), s, row)
	require.ErrorIs(t, err, s.err)
	require.ErrorIs(t, new(project.Run).Replay([]byte("{")), store.ErrDamaged)
}

func TestLoad_OfADamagedRunWithoutRecordWorks(t *testing.T) {
	t.Parallel()
	row := store.Run{
		Key:        store.Key{Tenant: "acme", RunID: "r"},
		WorkflowID: "flow",
		Head:       -1,
		Damage:     "no record",
		ErrorCode:  "log_damaged",
		Status:     wire.StatusPending,
		Facts:      store.Facts{Known: true},
	}
	r, err := project.Load(t.Context(), &shelf{}, row)
	require.NoError(t, err)
	require.Equal(t, row, r.Row())
}
