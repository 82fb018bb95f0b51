package engine

import (
	"context"

	"waybill.dev/waybill/services/dispatcher/snapshot"
)

// snapshot offers a snapshot of the run once enough events came since the last one.
func (s *session) snapshot() {
	if s.head.Next-s.offered >= snapshot.Every {
		s.offered = s.head.Next
		s.x.deps.Snapshots.Offer(s.m.State())
	}
}

// reread folds the run as its log has it now. The result has all frames after the session's head. A
// failed fold returns the frames, too.
func (s *session) reread(ctx context.Context) (snapshot.Folded, error) {
	if s.head.Next < snapshot.Every { // it is too short for a snapshot
		return s.x.deps.Snapshots.Whole(ctx, s.run)
	}
	return s.x.deps.Snapshots.Read(ctx, s.run, s.head.Pos)
}
