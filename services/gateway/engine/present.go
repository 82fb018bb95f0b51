package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/interrupttoken"
)

// freshTokens is how often a caller that asks again gets another token: until then it is
// told that nothing has changed.
const freshTokens = 5 * time.Minute

// interrupted are the members of a snapshot by which a waiting run is shown.
type interrupted struct {
	RunID     string         `json:"runId"`
	Owner     wire.Owner     `json:"owner"`
	Interrupt *openInterrupt `json:"interrupt"`
}

// openInterrupt is the member interrupt, with what only the gateway knows.
type openInterrupt struct {
	runstate.OpenInterrupt
	Token string `json:"interruptToken,omitempty"`
}

// present shows a snapshot to a caller: what the run waits for, and the token to answer
// it with, only to who may answer, or created the run (OpenWOP host contract §3.2). Who is
// bound to a user gets no token of an approval: without one they are that user, and a token is
// whoever it says that it is, or one voter more. Nor does anybody get one that a gate refuses
// since it names who may answer. A gate that only asks for a credential shows one, for the
// protocol's suite takes it from here to see it refused (§6.5). tag changes when the token does.
func (s *Service) present(ctx context.Context, snapshot []byte) (shown []byte, tag string) {
	if !bytes.Contains(snapshot, []byte(`"interrupt":`)) {
		return snapshot, ""
	}
	var (
		v   interrupted
		doc map[string]json.RawMessage
	)
	if json.Unmarshal(snapshot, &v) != nil || v.Interrupt == nil || json.Unmarshal(snapshot, &doc) != nil {
		return snapshot, ""
	}
	delete(doc, "interrupt")
	if p := auth.From(ctx); p.May(auth.ApprovalsRespond) || p.KeyID == v.Owner.Principal {
		asked := interrupt.Pending{Request: v.Interrupt.Payload}
		if !asked.NamesApprovers() && (p.User == "" || v.Interrupt.Kind != interrupt.Approval) {
			tag = s.sign(p.Tenant, &v)
		}
		doc["interrupt"], _ = json.Marshal(v.Interrupt) // its open members are JSON
	}
	shown, err := json.Marshal(doc)
	if err != nil { // members that were JSON
		return snapshot, ""
	}
	return shown, tag
}

// sign puts a token into the member interrupt.
func (s *Service) sign(tenant string, v *interrupted) (tag string) {
	at := s.deps.Clock().Truncate(freshTokens)
	pending := interrupt.Pending{Request: v.Interrupt.Payload, RequestedAt: v.Interrupt.RequestedAt}
	deadline, bounded := pending.Deadline()
	token, err := s.deps.Tokens.Sign(interrupttoken.Claims{
		Tenant: tenant, RunID: v.RunID, NodeID: v.Interrupt.NodeID, InterruptID: v.Interrupt.InterruptID,
		ExpiresAt: interrupttoken.Expiry(at, interrupttoken.Lifetime, deadline, bounded), Intent: interrupttoken.Resolve,
	})
	if err != nil {
		return ""
	}
	v.Interrupt.Token = token
	return at.UTC().Format("T1504")
}
