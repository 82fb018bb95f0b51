package project

import (
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/eventlog/store"
)

// Key names the run of a frame.
func Key(run subject.Run) store.Key { return store.Key{Tenant: run.Tenant, RunID: run.RunID} }

// Row is the run's row.
func (r *Run) Row() store.Run {
	s := r.State
	row := store.Run{
		Key: Key(r.ID), WorkflowID: r.ID.WorkflowID, Status: s.Status,
		CreatedAt: r.createdAt, StartedAt: s.StartedAt, CompletedAt: s.CompletedAt, Tags: s.Record.Tags,
		Head: r.Head.Next - 1, Pos: r.Head.Pos, Hash: r.Head.Hash, Damage: r.Damage,
	}
	if s.Error != nil {
		row.ErrorCode = s.Error.Code
	}
	if due, ok := s.Due(); ok && r.Damage == "" {
		row.DueMs = due.UnixMilli()
	}
	return row
}

// Stored is the frame as the store keeps it; ok is false for a frame that the
// store does not keep, because it has no events.
func Stored(f *frame.Frame) (s store.Frame, ok bool) {
	s = store.Frame{Key: Key(f.Run), First: f.First, Last: f.Last, Types: f.Types, Body: f.Body}
	if f.Kind.Begins() {
		s.First, s.Last = store.RecordFirst, store.RecordFirst
		return s, true
	}
	return s, f.Last >= f.First
}
