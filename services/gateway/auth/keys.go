// Package auth turns a credential into a principal, and holds the one table that
// says which scope a method needs. Whatever the table does not name is refused.
package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
)

// Scope is a permission; exact strings, no hierarchy (OpenWOP host contract §8.2).
type Scope string

// The scopes that methods of this host need.
const (
	ManifestRead     Scope = "manifest:read"
	RunsCreate       Scope = "runs:create"
	RunsRead         Scope = "runs:read"
	RunsCancel       Scope = "runs:cancel"
	ApprovalsRespond Scope = "approvals:respond"
	WorkflowsWrite   Scope = "workflows:write"
	AuditRead        Scope = "audit:read"
	WebhooksManage   Scope = "webhooks:manage"
)

// known are the scopes a key may be given: those of the protocol and our own.
var known = []Scope{
	ManifestRead, RunsCreate, RunsRead, RunsCancel, WorkflowsWrite, AuditRead, "artifacts:read", "webhooks:manage", ApprovalsRespond,
	"packs:publish", "packs:yank", "packs:yank-revert", "workspace:read", "workspace:write",
	ManifestRead, RunsCreate, RunsRead, RunsCancel, WorkflowsWrite, "artifacts:read", WebhooksManage, ApprovalsRespond,
	"packs:publish", "packs:yank", "packs:yank-revert", "audit:read", "workspace:read", "workspace:write",
}

// everyScope in a key's list stands for all scopes.
const everyScope = "*"

// TestKeyPrefix marks keys that may use test-only features.
const TestKeyPrefix = "hk_test_"

// Principal is who makes a request.
type Principal struct {
	Tenant string
	// KeyID names the key in events and logs; it tells nothing of the key.
	KeyID   string
	TestKey bool
	scopes  []Scope
	all     bool
}

// May reports whether the principal holds a scope.
func (p *Principal) May(s Scope) bool { return p.all || slices.Contains(p.scopes, s) }

// Keys are the API keys of a host, kept as keyed hashes only.
type Keys struct {
	// Used is told of each call that a key is used for, and of those that it lacks the
	// scope for; set it before the first, or not at all.
	Used func(p *Principal, s Scope, granted bool)

	salt   []byte
	byHash map[[sha256.Size]byte]*Principal
}

// Spec is one key as the operator gives it.
type Spec struct {
	Key, Tenant string
	Scopes      []Scope
	All         bool
}

// ParseSpec reads KEY=TENANT:SCOPE,SCOPE or KEY=TENANT:*. Errors never repeat
// the key.
func ParseSpec(s string) (Spec, error) {
	key, rest, ok := strings.Cut(s, "=")
	tenant, list, ok2 := strings.Cut(rest, ":")
	if !ok || !ok2 || key == "" {
		return Spec{}, errors.New("want KEY=TENANT:SCOPE,SCOPE or KEY=TENANT:*")
	}
	if strings.ContainsAny(key, " \t\r\n") {
		return Spec{}, errors.New("the key must not hold white space")
	}
	if !subject.Token(tenant) || len(tenant) > 64 {
		return Spec{}, fmt.Errorf("tenant %q: want 1 to 64 letters, digits, _ or -", tenant)
	}
	spec := Spec{Key: key, Tenant: tenant}
	for name := range strings.SplitSeq(list, ",") {
		switch {
		case name == everyScope:
			spec.All = true
		case slices.Contains(known, Scope(name)):
			spec.Scopes = append(spec.Scopes, Scope(name))
		default:
			return Spec{}, fmt.Errorf("scope %q is not known; want * or some of %v", name, known)
		}
	}
	return spec, nil
}

// ID names the key; it tells nothing of it.
func (s Spec) ID() string {
	id := sha256.Sum256([]byte("waybill-key-id\x00" + s.Key))
	return "key_" + hex.EncodeToString(id[:4])
}

// NewKeys makes the set of keys; two equal keys are an error.
func NewKeys(specs []Spec) (*Keys, error) {
	k := &Keys{salt: make([]byte, 32), byHash: make(map[[sha256.Size]byte]*Principal, len(specs))}
	if _, err := rand.Read(k.salt); err != nil {
		return nil, fmt.Errorf("salt for keys: %w", err)
	}
	for i, s := range specs {
		h := k.hash(s.Key)
		if k.byHash[h] != nil {
			return nil, fmt.Errorf("api key no. %d is given twice", i+1)
		}
		k.byHash[h] = &Principal{
			Tenant: s.Tenant, KeyID: s.ID(), TestKey: strings.HasPrefix(s.Key, TestKeyPrefix),
			scopes: s.Scopes, all: s.All,
		}
	}
	return k, nil
}

// hash is keyed with a salt of this process, so that a lookup by it tells
// nothing about the keys by its timing.
func (k *Keys) hash(key string) [sha256.Size]byte {
	m := hmac.New(sha256.New, k.salt)
	m.Write([]byte(key))
	return [sha256.Size]byte(m.Sum(nil))
}

const bearer = "bearer "

// Authenticate reads the value of an Authorization header.
func (k *Keys) Authenticate(header string) (*Principal, error) {
	if len(header) <= len(bearer) || !strings.EqualFold(header[:len(bearer)], bearer) {
		return nil, fault.New(fault.Unauthenticated, "send the header Authorization: Bearer <API key>")
	}
	p := k.byHash[k.hash(strings.TrimSpace(header[len(bearer):]))]
	if p == nil {
		return nil, fault.New(fault.Unauthenticated, "the API key is not known to this host")
	}
	return p, nil
}
