package engine

import (
	"context"

	"waybill.dev/waybill/services/dispatcher/snapshot"
)

// offerSnapshot offers a snapshot of the run if it has enough events since the last one.
func (s *session) offerSnapshot() {
	if s.head.Next-s.snapshotAt >= snapshot.Every {
		s.snapshotAt = s.head.Next
		s.exec.deps.Snapshots.Offer(s.machine.State())
	}
}

// rereadLog folds the run from its log. The result has all frames after the session's head, also if
// the fold fails.
func (s *session) rereadLog(ctx context.Context) (snapshot.Folded, error) {
	if s.head.Next < snapshot.Every { // too short for a snapshot
		return s.exec.deps.Snapshots.FoldAll(ctx, s.run)
	}
	return s.exec.deps.Snapshots.Read(ctx, s.run, s.head.Pos)
}
