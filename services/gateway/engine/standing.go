package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"google.golang.org/protobuf/proto"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/wirejson"
)

// vendorMembers are the members that this host adds to a snapshot, under its vendor key
// (OpenWOP host contract §3.2).
type vendorMembers struct {
	Waybill runStatus `json:"waybill"`
}

// runStatus is the part of a run list row that a snapshot also has. It does not say whether
// the run is stalled: that depends on the clock, and the ETag of a snapshot does not change with
// time. Readers compare StallsAt.
type runStatus struct {
	LastEventAt string          `json:"lastEventAt,omitempty"`
	Waits       json.RawMessage `json:"waits,omitempty"`
	StallsAt    string          `json:"stallsAt,omitempty"`
	Quarantine  json.RawMessage `json:"quarantine,omitempty"`
	// WorkflowVersion and WorkflowDigest identify the definition that the run executes.
	WorkflowVersion string `json:"workflowVersion,omitempty"`
	WorkflowDigest  string `json:"workflowDigest,omitempty"`
}

// withRunStatus adds the run's status to a snapshot. tag is the part of the ETag for what the log
// does not say; empty if the run is not blocked.
func (s *Service) withRunStatus(ctx context.Context, runID string, snapshot []byte, res *eventlogv1.GetRunResponse) (shown []byte, tag string) {
	var b blocked
	if s.quiet(res.GetWaits(), res.GetLastEventAt()) {
		b = s.findBlocked(ctx, runID)[runID]
	}
	doc := runStatus{LastEventAt: res.GetLastEventAt(), WorkflowVersion: res.GetWorkflowVersion(), WorkflowDigest: res.GetWorkflowDigest()}
	if w := runWait(res.GetWaits(), b.limit); w != nil {
		doc.Waits = rendered(w)
	}
	if b.quarantine != nil {
		doc.Quarantine = rendered(b.quarantine)
	}
	if b.any() {
		tag = digest(doc)
	} else if at, ok := s.stallsAt(res.GetWaits(), res.GetLastEventAt()); ok {
		doc.StallsAt = wire.FormatTime(at)
	}
	members, err := json.Marshal(vendorMembers{doc})
	before, object := bytes.CutSuffix(snapshot, []byte("}"))
	if err != nil || !object || bytes.Equal(members, []byte(`{"waybill":{}}`)) {
		return snapshot, ""
	}
	return bytes.Join([][]byte{before, members[1:]}, []byte(",")), tag // a snapshot is never empty
}

// rendered is a message as JSON; nil if it cannot be rendered.
func rendered(m proto.Message) json.RawMessage {
	b, err := wirejson.Append(nil, m)
	if err != nil {
		return nil
	}
	return b
}

func digest(doc runStatus) string {
	sum := sha256.Sum256(append(append([]byte{}, doc.Waits...), doc.Quarantine...))
	return "." + hex.EncodeToString(sum[:6])
}
