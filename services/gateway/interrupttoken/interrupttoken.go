// Package interrupttoken makes and reads the tokens by which somebody without a
// credential answers an interrupt (OpenWOP host contract §6.5).
//
// A token is made of facts and keys alone, so that every replica makes the same one
// and none is stored. It is shown to whoever may answer and to nobody else: never in a
// log, a span, an event or a bundle.
package interrupttoken

import (
	"encoding/json"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// Purpose names the tokens' key among those that derive from the host's secret; see
// token.DeriveKey.
const Purpose = "waybill interrupt tokens"

// Lifetime is how long a token is good, unless its interrupt ends before.
const Lifetime = 30 * time.Minute

// CallbackLifetime is how long one is good that a callback URL was sent, likewise. Its
// holder has no credential to ask for another one with.
const CallbackLifetime = 7 * 24 * time.Hour

// Intent is what the holder of a token may do.
type Intent string

// The intents.
const (
	Resolve Intent = "resolve" // and inspect
	Inspect Intent = "inspect"
)

func (i Intent) allows(use Intent) bool { return i == use || i == Resolve && use == Inspect }

// Claims are what a token says.
type Claims struct {
	// Tenant is whose run it is. The token has it sealed: its holder may be anybody.
	Tenant                     string
	RunID, NodeID, InterruptID string
	// ExpiresAt is kept in whole milliseconds.
	ExpiresAt time.Time
	Intent    Intent
}

// payload is the claims as a token has them.
type payload struct {
	RunID       string `json:"runId"`
	NodeID      string `json:"nodeId"`
	InterruptID string `json:"interruptId"`
	ExpiresAt   string `json:"expiresAt"`
	Intent      Intent `json:"intent"`
	Kid         int    `json:"kid"`
	Sealed      []byte `json:"t"`
}

// Expiry is when a token that is made now ends: after its lifetime, and never past the
// interrupt's own deadline, if it is bounded.
func Expiry(now time.Time, lifetime time.Duration, deadline time.Time, bounded bool) time.Time {
	end := now.Add(lifetime)
	if bounded && deadline.Before(end) {
		return deadline
	}
	return end
}

// Tokens makes and reads tokens. It is safe for concurrent use.
type Tokens struct{ sign, seal token.Keys }

// New takes the keys of a host. A token for another purpose that was made with the same
// keys is no token here.
func New(keys token.Keys) (*Tokens, error) {
	if err := keys.Check(); err != nil {
		return nil, fmt.Errorf("interrupt tokens: %w", err)
	}
	sign, err := keys.For(Purpose + ": hash")
	if err != nil {
		return nil, fmt.Errorf("interrupt tokens: %w", err)
	}
	seal, err := keys.For(Purpose + ": seal")
	if err != nil {
		return nil, fmt.Errorf("interrupt tokens: %w", err)
	}
	return &Tokens{sign: sign, seal: seal}, nil
}

// Sign makes a token. The same claims give the same token, whoever signs.
func (t *Tokens) Sign(c Claims) (string, error) {
	kid := t.sign.Current()
	sealed, err := seal(t.seal[kid], c.InterruptID, c.Tenant)
	if err != nil {
		return "", fmt.Errorf("interrupt token: %w", err)
	}
	body, err := json.Marshal(payload{
		RunID: c.RunID, NodeID: c.NodeID, InterruptID: c.InterruptID, ExpiresAt: wire.FormatTime(c.ExpiresAt), Intent: c.Intent, Kid: kid, Sealed: sealed,
	})
	if err != nil {
		return "", fmt.Errorf("interrupt token: %w", err)
	}
	text := t.sign.Sign(body)
	if len(text) > token.MaxLen {
		return "", fmt.Errorf("interrupt token: the ids of run and node make it longer than %d bytes", token.MaxLen)
	}
	return text, nil
}

// Open reads a token for a use of it. Errors: fault.InterruptNotFound for anything but
// a token of this host, whatever is wrong with it; fault.InterruptExpired;
// fault.Forbidden for a token that allows less than the use.
func (t *Tokens) Open(text string, use Intent, now time.Time) (Claims, error) {
	c, ok := t.read(text)
	switch {
	case !ok:
		return Claims{}, fault.New(fault.InterruptNotFound, "there is no interrupt behind this token")
	case !now.Before(c.ExpiresAt):
		return Claims{}, fault.New(fault.InterruptExpired, "the token has expired; somebody with the scope approvals:respond may still answer, as long as the interrupt is open")
	case !c.Intent.allows(use):
		return Claims{}, fault.New(fault.Forbidden, "the token is for looking at the interrupt, not for answering it")
	}
	return c, nil
}

func (t *Tokens) read(text string) (Claims, bool) {
	body, kid, ok := t.sign.Open(text)
	var p payload
	if !ok || strictjson.Read(body, &p) != nil || p.Kid != kid {
		return Claims{}, false
	}
	expires, err := time.Parse(wire.TimeLayout, p.ExpiresAt)
	tenant, opened := unseal(t.seal[kid], p.InterruptID, p.Sealed)
	if err != nil || !opened {
		return Claims{}, false
	}
	return Claims{Tenant: tenant, RunID: p.RunID, NodeID: p.NodeID, InterruptID: p.InterruptID, ExpiresAt: expires, Intent: p.Intent}, true
}
