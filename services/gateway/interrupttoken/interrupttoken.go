// Package interrupttoken makes and reads the tokens that answer an interrupt without a
// credential (OpenWOP host contract §6.5).
//
// A token derives from its claims and the host's keys, so every replica makes the same one and
// none is stored. It is shown only to callers that may answer; it never appears in a log, span,
// event or bundle.
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

// Purpose labels the key of tokens among the keys that derive from the host's secret; see
// token.DeriveKey.
const Purpose = "waybill interrupt tokens"

// Lifetime is how long a token is valid by default. A token never outlives its interrupt.
const Lifetime = 30 * time.Minute

// CallbackLifetime is the default lifetime of tokens sent to a callback URL. Its receiver has no
// credential to request another one with.
const CallbackLifetime = 7 * 24 * time.Hour

// Intent is what a token permits.
type Intent string

// The intents.
const (
	Resolve Intent = "resolve" // and inspect
	Inspect Intent = "inspect"
)

func (i Intent) allows(use Intent) bool { return i == use || i == Resolve && use == Inspect }

// Claims are the content of a token.
type Claims struct {
	// Tenant is encrypted in the token, because its holder may be unauthenticated.
	Tenant                     string
	RunID, NodeID, InterruptID string
	// ExpiresAt has a precision of milliseconds.
	ExpiresAt time.Time
	Intent    Intent
}

// payload is the encoded form of the claims.
type payload struct {
	RunID       string `json:"runId"`
	NodeID      string `json:"nodeId"`
	InterruptID string `json:"interruptId"`
	ExpiresAt   string `json:"expiresAt"`
	Intent      Intent `json:"intent"`
	Kid         int    `json:"kid"`
	Sealed      []byte `json:"t"`
}

// Expiry returns when a token made now expires: after its lifetime, but not after the
// interrupt's deadline if it is bounded.
func Expiry(now time.Time, lifetime time.Duration, deadline time.Time, bounded bool) time.Time {
	end := now.Add(lifetime)
	if bounded && deadline.Before(end) {
		return deadline
	}
	return end
}

// Tokens makes and reads tokens. It is safe for concurrent use.
type Tokens struct{ sign, seal token.Keys }

// New derives the keys for tokens from the keys of a host. Tokens for other purposes made
// with the same keys are invalid here.
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

// Sign makes a token. It is deterministic: the same claims give the same token on every
// replica.
func (t *Tokens) Sign(c Claims) (string, error) {
	kid := t.sign.Current()
	sealed, err := seal(t.seal[kid], c.InterruptID, c.Tenant)
	if err != nil {
		return "", fmt.Errorf("interrupt token: %w", err)
	}
	body, err := json.Marshal(payload{
		RunID:       c.RunID,
		NodeID:      c.NodeID,
		InterruptID: c.InterruptID,
		ExpiresAt:   wire.FormatTime(c.ExpiresAt),
		Intent:      c.Intent,
		Kid:         kid,
		Sealed:      sealed,
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

// Open reads a token for a use. Errors: fault.InterruptNotFound for anything that is not a
// token of this host; fault.InterruptExpired; fault.Forbidden if the token does not permit
// the use.
func (t *Tokens) Open(text string, use Intent, now time.Time) (Claims, error) {
	c, ok := t.read(text)
	switch {
	case !ok:
		return Claims{}, fault.New(fault.InterruptNotFound, "no interrupt matches this token")
	case !now.Before(c.ExpiresAt):
		return Claims{}, fault.New(fault.InterruptExpired, "the token has expired; while the interrupt is open, a key with the scope approvals:respond can still answer")
	case !c.Intent.allows(use):
		return Claims{}, fault.New(fault.Forbidden, "the token permits inspecting the interrupt, not answering it")
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
	return Claims{
		Tenant:      tenant,
		RunID:       p.RunID,
		NodeID:      p.NodeID,
		InterruptID: p.InterruptID,
		ExpiresAt:   expires,
		Intent:      p.Intent,
	}, true
}
