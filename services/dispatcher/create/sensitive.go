package create

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// CleartextStore stores the clear body of a frame whose body in the log is masked.
type CleartextStore interface {
	Put(ctx context.Context, r subject.Run, first int, writer string, clear []byte) error
}

// CheckMaskable rejects a workflow whose sensitive values this host could not mask in its log
// (OpenWOP host contract §10.3).
func (s *Starter) CheckMaskable(def *workflow.Definition) error {
	if node.NewMaskPolicy(def, node.CurrentOf(s.deps.Types)) == nil {
		return nil
	}
	const remedy = "; take the node out, or set metadata.complianceConfig.maskingMode to passthrough if the values may be recorded"
	if s.deps.Cleartext == nil {
		return fault.New(fault.CapabilityRequired, "the workflow marks values as sensitive, and this host has no store for them").
			With("requiredCapability", "masking")
	}
	if n, refused := node.FindUnmaskable(def, node.CurrentOf(s.deps.Types)); refused {
		return fault.New(fault.CapabilityRequired, "the workflow marks values as sensitive, and this host does not mask the progress of a node of type %q, %q"+remedy, n.TypeID, n.ID).
			With("requiredCapability", "masking").With("offendingTypeId", n.TypeID).With("nodeId", n.ID)
	}
	return nil
}

// maskRecord stores the clear record of a run and returns the masked one for the log. A run without
// sensitive values keeps its record.
func (s *Starter) maskRecord(ctx context.Context, r subject.Run, writer string, body []byte, p *node.MaskPolicy) ([]byte, error) {
	if p == nil {
		return body, nil
	}
	rec, err := wire.ParseRunRecord(body)
	if err != nil {
		return nil, err
	}
	masked := p.Record(rec)
	rec.Masking = masked.Masking
	clear, err := json.Marshal(rec)
	if err != nil {
		return nil, fmt.Errorf("render run record: %w", err)
	}
	if err := s.deps.Cleartext.Put(ctx, r, 0, writer, clear); err != nil {
		return nil, fault.New(fault.ServiceUnavailable, "the store of sensitive values is unavailable; no run was started; repeat the request").
			After(time.Second).Wrap(err)
	}
	return json.Marshal(masked)
}
