package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"time"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/interrupttoken"
)

// tokenInterval is how often the token in a snapshot changes. Until then conditional
// requests are answered with "not modified".
const tokenInterval = 5 * time.Minute

// interrupted holds the members of a waiting run's snapshot that this file reads.
type interrupted struct {
	RunID     string
	Owner     wire.Owner
	Interrupt *openInterrupt
}

// openInterrupt is the member interrupt with its token.
type openInterrupt struct {
	runstate.OpenInterrupt
	Token string `json:"interruptToken,omitempty"`
}

// presentSnapshot returns a snapshot as the caller may see it (OpenWOP host contract §3.2).
// Callers that may answer, or that created the run, see the open interrupt with a token;
// others do not see it. tag changes with the token.
//
// Two kinds of interrupts have no token. A user-bound key gets none for an approval: a token
// would let it vote as someone else, or twice. A gate that names its approvers rejects
// tokens, so none is shown. A gate that only requires a credential shows one, because the
// protocol's test suite uses it to check the rejection (§6.5).
func (s *Service) presentSnapshot(ctx context.Context, snapshot []byte) (shown []byte, tag string) {
	if !bytes.Contains(snapshot, []byte(`"interrupt":`)) {
		return snapshot, ""
	}
	v, rest, ok := splitInterrupt(snapshot)
	if !ok {
		return snapshot, ""
	}
	if p := auth.From(ctx); p.May(auth.ApprovalsRespond) || p.KeyID == v.Owner.Principal {
		asked := interrupt.Pending{Request: v.Interrupt.Payload}
		if !asked.NamesApprovers() && (p.User == "" || v.Interrupt.Kind != interrupt.Approval) {
			tag = s.signToken(p.Tenant, v)
		}
		open, _ := json.Marshal(v.Interrupt) // its open members are JSON
		rest = appendMember(rest, []byte("interrupt"), open)
	}
	return append(rest, '}'), tag
}

// splitInterrupt returns the interrupt of a snapshot, and the other members, without the brace at
// their end. A snapshot may be large, so it is read once.
func splitInterrupt(snapshot []byte) (v *interrupted, rest []byte, ok bool) {
	v, ok = &interrupted{}, true
	rest = append(make([]byte, 0, len(snapshot)+len(snapshot)/16+1024), '{')
	read := func(value []byte, into any) { ok = json.Unmarshal(value, into) == nil && ok }
	sound := strictjson.Each(snapshot, func(name, value []byte) {
		switch string(name) {
		case "interrupt":
			read(value, &v.Interrupt)
			return
		case "runId":
			read(value, &v.RunID)
		case "owner":
			read(value, &v.Owner)
		}
		rest = appendMember(rest, name, value)
	})
	return v, rest, ok && sound && v.Interrupt != nil
}

// appendMember appends a member to an object that has no brace at its end yet.
func appendMember(object, name, value []byte) []byte {
	if len(object) > 1 {
		object = append(object, ',')
	}
	object = wire.AppendString(object, string(name))
	object = append(object, ':')
	return append(object, value...)
}

// signToken adds a token to the member interrupt.
func (s *Service) signToken(tenant string, v *interrupted) (tag string) {
	at := s.deps.Clock().Truncate(tokenInterval)
	pending := interrupt.Pending{Request: v.Interrupt.Payload, RequestedAt: v.Interrupt.RequestedAt}
	deadline, bounded := pending.Deadline()
	token, err := s.deps.Tokens.Sign(interrupttoken.Claims{
		Tenant: tenant, RunID: v.RunID, NodeID: v.Interrupt.NodeID, InterruptID: v.Interrupt.InterruptID,
		ExpiresAt: interrupttoken.Expiry(at, cmp.Or(s.deps.TokenLifetime, interrupttoken.Lifetime), deadline, bounded), Intent: interrupttoken.Resolve,
	})
	if err != nil {
		return ""
	}
	v.Interrupt.Token = token
	return at.UTC().Format("T1504")
}
