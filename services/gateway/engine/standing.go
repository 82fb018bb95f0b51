package engine

import (
	"bytes"
	"encoding/json"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/wire"
)

// vendorMembers are the members that this host adds to a snapshot, under its vendor key
// (OpenWOP host contract §3.2).
type vendorMembers struct {
	Waybill runStatus `json:"waybill"`
}

// runStatus is the part of a run list row that a snapshot also has. It does not say whether
// the run is stalled: that depends on the clock, and a snapshot changes only with its log.
// Readers compare StallsAt.
type runStatus struct {
	LastEventAt string    `json:"lastEventAt,omitempty"`
	Waits       *waitsDoc `json:"waits,omitempty"`
	StallsAt    string    `json:"stallsAt,omitempty"`
}

type waitsDoc struct {
	For       string `json:"for"`
	NodeID    string `json:"nodeId,omitempty"`
	Attempt   int32  `json:"attempt,omitempty"`
	Since     string `json:"since,omitempty"`
	DueAt     string `json:"dueAt,omitempty"`
	Questions int32  `json:"questions,omitempty"`
	HeldBy    string `json:"heldBy,omitempty"`
}

// withRunStatus adds the run's status to a snapshot.
func (s *Service) withRunStatus(snapshot []byte, res *eventlogv1.GetRunResponse) []byte {
	doc := runStatus{LastEventAt: res.GetLastEventAt()}
	if w := res.GetWaits(); w != nil {
		doc.Waits = &waitsDoc{
			For: w.GetFor(), NodeID: w.GetNodeId(), Attempt: w.GetAttempt(), Since: w.GetSince(), DueAt: w.GetDueAt(),
			Questions: w.GetQuestions(), HeldBy: w.GetHeldBy(),
		}
	}
	if at, ok := s.stallsAt(res.GetWaits(), res.GetLastEventAt()); ok {
		doc.StallsAt = wire.FormatTime(at)
	}
	members, err := json.Marshal(vendorMembers{doc})
	before, object := bytes.CutSuffix(snapshot, []byte("}"))
	if err != nil || doc == (runStatus{}) || !object {
		return snapshot
	}
	return bytes.Join([][]byte{before, members[1:]}, []byte(",")) // a snapshot is never empty
}
