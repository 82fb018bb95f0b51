package project

import (
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// Key returns the key of a frame's run.
func Key(run subject.Run) store.Key { return store.Key{Tenant: run.Tenant, RunID: run.RunID} }

// Row returns the run's row.
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
	if r.Damage != "" { // the status is that before the damage, so a list must not show it alone
		row.ErrorCode = string(fault.LogDamaged)
	}
	if due, ok := s.Due(); ok && r.Damage == "" {
		row.DueMs = due.UnixMilli()
	}
	row.Asks = len(s.Questions())
	row.Owner = r.Owner()
	waits := r.Waits()
	row.LastEventAt, row.Waits = r.LastEventAt(), waits.text()
	row.Facts = r.facts(waits)
	return row
}

// PartEvents is the maximum number of events per stored frame. Fast streaming models fill frames
// with thousands of events, and reading a page of a hundred should not load them all.
const PartEvents = 64

// Stored returns the frame as the store holds it: in parts, or none if it has no events.
func Stored(f *frame.Frame) []store.Frame {
	whole := store.Frame{Key: Key(f.Run), First: f.First, Last: f.Last, Types: f.Types, Body: f.Body}
	switch {
	case f.Kind.Begins():
		whole.First, whole.Last = store.RecordFirst, store.RecordFirst
		return []store.Frame{whole}
	case f.Last < f.First:
		return nil
	case f.Last-f.First < PartEvents:
		return []store.Frame{whole}
	}
	docs, err := wire.SplitArray(f.Body)
	if err != nil || len(docs) != len(f.Types) {
		return []store.Frame{whole} // unchanged: readers report the error
	}
	var parts []store.Frame
	for at := 0; at < len(docs); at += PartEvents {
		end := min(at+PartEvents, len(docs))
		parts = append(parts, store.Frame{
			Key:   whole.Key,
			First: f.First + at,
			Last:  f.First + end - 1,
			Types: f.Types[at:end],
			Body:  wire.JoinArray(docs[at:end]),
		})
	}
	return parts
}
