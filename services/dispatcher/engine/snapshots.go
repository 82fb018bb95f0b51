package engine

import (
	"context"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/engine/snapshot"
)

// sessionSnapshots offers snapshots of a session's run, and folds the run from them.
type sessionSnapshots struct {
	keeper *snapshot.Keeper
	// offeredAt is the number of events at the last offer.
	offeredAt int
}

// offer offers a snapshot of the run if it has enough events since the last one.
func (o *sessionSnapshots) offer(head frame.Head, st *runstate.State) {
	if head.Next-o.offeredAt >= snapshot.Every {
		o.offeredAt = head.Next
		o.keeper.Offer(st)
	}
}

// fold folds a run from its log. The result has all frames after head, also if the fold fails.
func (o *sessionSnapshots) fold(ctx context.Context, r subject.Run, head frame.Head) (snapshot.Folded, error) {
	if head.Next < snapshot.Every { // too short for a snapshot
		return o.keeper.FoldAll(ctx, r)
	}
	return o.keeper.Read(ctx, r, head.Pos)
}
