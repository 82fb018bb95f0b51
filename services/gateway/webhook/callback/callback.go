// Package callback renders what a run asks for the server that it names as callbackUrl:
// the question, and a token by which that server may answer (OpenWOP host contract §6.5,
// exposure).
//
// The token is made for one attempt to deliver it. It stands in what is sent and nowhere
// else.
package callback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/interrupttoken"
)

// Questions renders questions. It is safe for concurrent use.
type Questions struct {
	Dispatcher dispatcherv1.DispatcherClient
	EventLog   eventlogv1.EventLogClient
	Tokens     *interrupttoken.Tokens
	// PublicURL is where clients reach the host, without a slash at its end; empty: the
	// host does not know.
	PublicURL string
	Clock     func() time.Time
}

// document is what is sent.
type document struct {
	RunID        string         `json:"runId"`
	WorkflowID   string         `json:"workflowId"`
	WorkspaceID  string         `json:"workspaceId,omitempty"`
	Type         wire.EventType `json:"type"`
	Sequence     int            `json:"sequence"`
	Status       string         `json:"status"`
	ContentTrust wire.Trust     `json:"contentTrust,omitempty"`
	Interrupt    question       `json:"interrupt"`
	ResolveURL   string         `json:"resolveUrl,omitempty"`
}

// question is the member interrupt of a snapshot, with a token and its end.
type question struct {
	runstate.OpenInterrupt
	Token     string `json:"interruptToken,omitempty"`
	ExpiresAt string `json:"expiresAt,omitempty"`
}

// errCopied says that a fork has not yet taken over all of its source's history: what is
// open now may have been answered there.
var errCopied = errors.New("the run's history is being copied")

// Ask renders the question of an interrupt.requested event, as the log has it, or the one
// that an event takes to another level; nil: nobody waits for an answer any more. The key is
// the same whenever the same run asks the same at the same level.
func (q *Questions) Ask(ctx context.Context, rec *wire.RunRecord, sequence int, event json.RawMessage) (doc []byte, key string, err error) {
	asked, typ, err := read(event)
	if err != nil {
		return nil, "", err
	}
	run, err := q.EventLog.GetRun(ctx, &eventlogv1.GetRunRequest{Tenant: rec.Owner.Tenant, RunId: rec.RunID})
	if err != nil {
		return nil, "", fmt.Errorf("read run: %w", err)
	}
	if status := wire.Status(run.GetStatus()); status.Terminal() || status == wire.StatusCancelling {
		return nil, "", nil
	}
	if int(run.GetLastSequence()) < rec.Copied()-1 {
		return nil, "", errCopied
	}
	now, err := q.Dispatcher.GetInterrupt(ctx, &dispatcherv1.GetInterruptRequest{
		Tenant: rec.Owner.Tenant, RunId: rec.RunID, NodeId: asked.NodeID, InterruptId: asked.InterruptID,
	})
	if err != nil {
		return nil, "", fmt.Errorf("read interrupt: %w", err)
	}
	asked.RunID, asked.RequestedAt = rec.RunID, now.GetRequestedAt() // a fork asks anew what its source has asked
	key = rec.RunID + ":" + asked.InterruptID
	if typ == wire.EventApprovalEscalated {
		key += ":" + strconv.Itoa(asked.Level())
		if err := json.Unmarshal(now.GetPayload(), &asked.Request); err != nil {
			return nil, "", fmt.Errorf("read interrupt: %w", err)
		}
	}
	if now.GetResolved() || now.GetGone() || asked.Expired(q.Clock()) {
		return nil, "", nil
	}
	asked.SetLevel(int(now.GetLevel()), now.GetEscalatedAt()) // it is shown as it stands
	doc, err = json.Marshal(q.document(rec, asked, typ, sequence, run.GetStatus()))
	return doc, key, err
}

// read reads the interrupt of its event, or as much as that of an escalation tells.
func read(event json.RawMessage) (p *interrupt.Pending, typ wire.EventType, err error) {
	var e wire.Event
	if err := json.Unmarshal(event, &e); err != nil {
		return nil, "", fmt.Errorf("read event: %w", err)
	}
	if e.Type == wire.EventApprovalEscalated {
		p, err = interrupt.ReopenEscalated(e)
	} else {
		p, err = interrupt.Reopen(e.Payload, e.ContentTrust)
	}
	return p, e.Type, err
}

func (q *Questions) document(rec *wire.RunRecord, p *interrupt.Pending, typ wire.EventType, sequence int, status string) document {
	d := document{
		RunID: rec.RunID, WorkflowID: rec.WorkflowID, WorkspaceID: rec.Owner.Workspace, Type: typ,
		Sequence: sequence, Status: status, ContentTrust: p.Trust,
		Interrupt: question{OpenInterrupt: runstate.OpenInterrupt{
			Kind: p.Kind, NodeID: p.NodeID, InterruptID: p.InterruptID, Payload: p.Request, RequestedAt: p.RequestedAt, Escalation: p.Escalated,
		}},
	}
	path := "/v1/runs/" + rec.RunID + "/interrupts/" + url.PathEscape(p.NodeID)
	if token, until, ok := q.token(rec.Owner.Tenant, p); ok {
		d.Interrupt.Token, d.Interrupt.ExpiresAt = token, wire.FormatTime(until)
		path = "/v1/interrupts/" + token
	}
	if q.PublicURL != "" {
		d.ResolveURL = q.PublicURL + path
	}
	return d
}

// token makes a token, unless whoever answers needs a credential (OpenWOP host contract
// §6.5, last row), or the ids are too long for one.
func (q *Questions) token(tenant string, p *interrupt.Pending) (token string, until time.Time, ok bool) {
	if p.NeedsCredential() {
		return "", time.Time{}, false
	}
	deadline, bounded := p.Deadline()
	until = interrupttoken.Expiry(q.Clock(), interrupttoken.CallbackLifetime, deadline, bounded)
	token, err := q.Tokens.Sign(interrupttoken.Claims{
		Tenant: tenant, RunID: p.RunID, NodeID: p.NodeID, InterruptID: p.InterruptID, ExpiresAt: until, Intent: interrupttoken.Resolve,
	})
	return token, until, err == nil
}
