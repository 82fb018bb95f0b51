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
	KeyID string
	// User is the person whom the key is bound to; empty: nobody. Groups and Roles are what
	// its holder belongs to, by the exact names that gates refer to (RFC 0104).
	User          string
	Groups, Roles []string
	TestKey       bool
	scopes        []Scope
	all           bool
}

// May reports whether the principal holds a scope.
func (p *Principal) May(s Scope) bool { return p.all || slices.Contains(p.scopes, s) }

// Scopes are those that the principal holds.
func (p *Principal) Scopes() []Scope {
	if p.all {
		return slices.Clone(known)
	}
	return slices.Clone(p.scopes)
}

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
	// User, Groups and Roles are opaque names, and no personal data: they come to stand in
	// the log.
	User          string
	Groups, Roles []string
}

// What a key belongs to stands among its scopes, after one of these.
const (
	userPrefix  = "user:"
	groupPrefix = "group:"
	rolePrefix  = "role:"
)

// maxName bounds a name of what a key belongs to.
const maxName = 256

// ParseSpec reads KEY=TENANT:SCOPE,SCOPE or KEY=TENANT:*, with user:NAME, group:NAME and
// role:NAME among the scopes. Errors never repeat the key.
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
			if err := spec.belong(name); err != nil {
				return Spec{}, err
			}
		}
	}
	if !spec.All && len(spec.Scopes) == 0 {
		return Spec{}, errors.New("want at least one scope, or *")
	}
	return spec, nil
}

// belong takes what the key belongs to.
func (s *Spec) belong(entry string) error {
	prefix, name, ok := strings.Cut(entry, ":")
	prefix += ":"
	if !ok || prefix != userPrefix && prefix != groupPrefix && prefix != rolePrefix {
		return fmt.Errorf("scope %q is not known; want * or some of %v, or %sNAME, %sNAME, %sNAME", entry, known, userPrefix, groupPrefix, rolePrefix)
	}
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return fmt.Errorf("%s: want a name of 1 to %d printable characters of ASCII, without white space", prefix, maxName)
	}
	switch prefix {
	case groupPrefix:
		s.Groups = append(s.Groups, name)
	case rolePrefix:
		s.Roles = append(s.Roles, name)
	default:
		if s.User != "" {
			return errors.New("user: a key is bound to one user")
		}
		s.User = name
	}
	return nil
}

// Belongings are what the key belongs to, as the operator gives it.
func (s Spec) Belongings() (out []string) {
	if s.User != "" {
		out = append(out, userPrefix+s.User)
	}
	for _, name := range s.Groups {
		out = append(out, groupPrefix+name)
	}
	for _, name := range s.Roles {
		out = append(out, rolePrefix+name)
	}
	return out
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
			User: s.User, Groups: s.Groups, Roles: s.Roles,
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

// Tenant is whose the credential in an Authorization header is; empty: nobody's.
func (k *Keys) Tenant(header string) string {
	p, err := k.Authenticate(header)
	if err != nil {
		return ""
	}
	return p.Tenant
}
