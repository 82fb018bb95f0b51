package webhook

import (
	"cmp"
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

// CallbackQuestions renders the question of a run for its callbackUrl, with a token that its
// receiver answers with (OpenWOP host contract §6.5, exposure). Each delivery attempt gets a
// new token, which is sent and never stored. It is safe for concurrent use.
type CallbackQuestions struct {
	Dispatcher dispatcherv1.DispatcherClient
	EventLog   eventlogv1.EventLogClient
	Tokens     *interrupttoken.Tokens
	// Lifetime is how long tokens are valid; 0 uses the default.
	Lifetime time.Duration
	// PublicURL is the host's public address without a trailing slash; empty leaves out
	// resolveUrl.
	PublicURL string
	Clock     func() time.Time
}

// document is the request body.
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

// question is the interrupt member of a snapshot, with a token and its expiry.
type question struct {
	runstate.OpenInterrupt
	Token     string `json:"interruptToken,omitempty"`
	ExpiresAt string `json:"expiresAt,omitempty"`
}

// errCopied means that a fork has not copied all of its source's history yet. A question
// that is open now may be answered later in that history.
var errCopied = errors.New("the run's history is being copied")

// RenderQuestion renders the question of an interrupt.requested event, or of an event that
// escalates it. The document is nil if the question no longer needs an answer. key is the
// same for the same question of the same run at the same escalation level.
func (q *CallbackQuestions) RenderQuestion(ctx context.Context, rec *wire.RunRecord, sequence int, event json.RawMessage) (doc []byte, key string, err error) {
	asked, typ, err := readQuestion(event)
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
	asked.RunID, asked.RequestedAt = rec.RunID, now.GetRequestedAt() // a fork requests what its source requested before
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
	asked.SetLevel(int(now.GetLevel()), now.GetEscalatedAt()) // the current escalation level
	doc, err = json.Marshal(q.document(rec, asked, typ, sequence, run.GetStatus()))
	return doc, key, err
}

// readQuestion reads the interrupt from its event. An escalation event holds only part of it.
func readQuestion(event json.RawMessage) (p *interrupt.Pending, typ wire.EventType, err error) {
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

func (q *CallbackQuestions) document(rec *wire.RunRecord, p *interrupt.Pending, typ wire.EventType, sequence int, status string) document {
	d := document{
		RunID: rec.RunID, WorkflowID: rec.WorkflowID, WorkspaceID: rec.Owner.Workspace, Type: typ,
		Sequence: sequence, Status: status, ContentTrust: p.Trust,
		Interrupt: question{OpenInterrupt: runstate.OpenInterrupt{
			Kind:        p.Kind,
			NodeID:      p.NodeID,
			InterruptID: p.InterruptID,
			Payload:     p.Request,
			RequestedAt: p.RequestedAt,
			Escalation:  p.Escalated,
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

// token signs a token. ok is false if only a credential may answer (OpenWOP host contract
// §6.5, last row), or if the ids are too long for a token.
func (q *CallbackQuestions) token(tenant string, p *interrupt.Pending) (token string, until time.Time, ok bool) {
	if p.NeedsCredential() {
		return "", time.Time{}, false
	}
	deadline, bounded := p.Deadline()
	until = interrupttoken.Expiry(q.Clock(), cmp.Or(q.Lifetime, interrupttoken.CallbackLifetime), deadline, bounded)
	token, err := q.Tokens.Sign(interrupttoken.Claims{
		Tenant:      tenant,
		RunID:       p.RunID,
		NodeID:      p.NodeID,
		InterruptID: p.InterruptID,
		ExpiresAt:   until,
		Intent:      interrupttoken.Resolve,
	})
	return token, until, err == nil
}
