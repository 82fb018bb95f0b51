package engine

import (
	"bytes"
	"encoding/json"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/wire"
)

// extended holds what this host says of a run besides the protocol: members of a vendor
// stand under its key (OpenWOP host contract §3.2).
type extended struct {
	Waybill standing `json:"waybill"`
}

// standing is how a run stands: what a row of the run list says, too. Whether it is stalled is left to the reader's clock, since a snapshot is the same
// as long as its log is.
type standing struct {
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

// withStanding adds to a snapshot how its run stands.
func (s *Service) withStanding(snapshot []byte, res *eventlogv1.GetRunResponse) []byte {
	doc := standing{LastEventAt: res.GetLastEventAt()}
	if w := res.GetWaits(); w != nil {
		doc.Waits = &waitsDoc{
			For: w.GetFor(), NodeID: w.GetNodeId(), Attempt: w.GetAttempt(), Since: w.GetSince(), DueAt: w.GetDueAt(),
			Questions: w.GetQuestions(), HeldBy: w.GetHeldBy(),
		}
	}
	if at, ok := s.stalls(res.GetWaits(), res.GetLastEventAt()); ok {
		doc.StallsAt = wire.FormatTime(at)
	}
	members, err := json.Marshal(extended{doc})
	before, object := bytes.CutSuffix(snapshot, []byte("}"))
	if err != nil || doc == (standing{}) || !object {
		return snapshot
	}
	return bytes.Join([][]byte{before, members[1:]}, []byte(",")) // a snapshot is never empty
}
