// Package auth turns API keys into principals and checks the scope of each method against one
// table. Methods that are not in the table are rejected.
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

// Scope is a permission: an exact string without hierarchy (OpenWOP host contract §8.2).
type Scope string

// The scopes that this host's methods require.
const (
	ManifestRead     Scope = "manifest:read"
	RunsCreate       Scope = "runs:create"
	RunsRead         Scope = "runs:read"
	RunsCancel       Scope = "runs:cancel"
	RunsDelete       Scope = "runs:delete"
	RunsHold         Scope = "runs:hold"
	RunsArchive      Scope = "runs:archive"
	TenantErase      Scope = "tenant:erase"
	ApprovalsRespond Scope = "approvals:respond"
	WorkflowsWrite   Scope = "workflows:write"
	AuditRead        Scope = "audit:read"
	WebhooksManage   Scope = "webhooks:manage"
	// SystemRead is for operators: what it shows is of all tenants, without their names.
	SystemRead Scope = "system:read"
	// TenantsRead is for operators: what it shows names all tenants, so * does not grant it.
	TenantsRead Scope = "tenants:read"
)

// known are the scopes a key may have: the protocol's and this host's own.
var known = []Scope{
	ManifestRead, RunsCreate, RunsRead, RunsCancel, RunsDelete, RunsHold, RunsArchive, TenantErase,
	WorkflowsWrite, "artifacts:read", WebhooksManage, ApprovalsRespond,
	"packs:publish", "packs:yank", "packs:yank-revert", "audit:read", "workspace:read", "workspace:write", SystemRead,
	TenantsRead,
}

// everyScope in a key's list grants all scopes except TenantsRead.
const everyScope = "*"

// TestKeyPrefix marks keys that may use test-only features.
const TestKeyPrefix = "hk_test_"

// Principal is the holder of a credential.
type Principal struct {
	Tenant string
	// KeyID identifies the key in events and logs without revealing it.
	KeyID string
	// User is the person the key is bound to; empty means none. Groups and Roles are the
	// memberships of its holder, by the exact names that gates use (RFC 0104).
	User          string
	Groups, Roles []string
	TestKey       bool
	scopes        []Scope
	all           bool
}

// Subject returns the user that the key is bound to, or the id of the key.
func (p *Principal) Subject() string {
	if p.User != "" {
		return p.User
	}
	return p.KeyID
}

// May reports whether the principal holds a scope.
func (p *Principal) May(s Scope) bool {
	return p.all && s != TenantsRead || slices.Contains(p.scopes, s)
}

// Scopes returns the scopes of the principal.
func (p *Principal) Scopes() []Scope {
	if !p.all {
		return slices.Clone(p.scopes)
	}
	return slices.DeleteFunc(slices.Clone(known), func(s Scope) bool { return !p.May(s) })
}

// Keys are the API keys of a host, stored as keyed hashes only.
type Keys struct {
	// Used is called for each authorized call, and for each call that lacks its scope. Set
	// it before the first call or leave it nil.
	Used func(p *Principal, s Scope, granted bool)

	salt   []byte
	byHash map[[sha256.Size]byte]*Principal
}

// Spec is one key as the operator configures it.
type Spec struct {
	Key, Tenant string
	Scopes      []Scope
	All         bool
	// User, Groups and Roles are opaque names. They are written to the log, so they must not
	// be personal data.
	User          string
	Groups, Roles []string
}

// A key's memberships are listed among its scopes, with one of these prefixes.
const (
	userPrefix  = "user:"
	groupPrefix = "group:"
	rolePrefix  = "role:"
)

// maxName limits the length of a membership name.
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
		return Spec{}, errors.New("the key must not contain white space")
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
			if err := spec.addMembership(name); err != nil {
				return Spec{}, err
			}
		}
	}
	if !spec.All && len(spec.Scopes) == 0 {
		return Spec{}, errors.New("want at least one scope, or *")
	}
	return spec, nil
}

// addMembership parses a membership of the key.
func (s *Spec) addMembership(entry string) error {
	prefix, name, ok := strings.Cut(entry, ":")
	prefix += ":"
	if !ok || prefix != userPrefix && prefix != groupPrefix && prefix != rolePrefix {
		return fmt.Errorf("scope %q is not known; want * or some of %v, or %sNAME, %sNAME, %sNAME", entry, known, userPrefix, groupPrefix, rolePrefix)
	}
	if !IsName(name) {
		return fmt.Errorf("%s: want a name of %s", prefix, NameRule())
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

// IsName reports whether a text may be the name of a user, group or role.
func IsName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' })
}

// NameRule describes such names.
func NameRule() string {
	return fmt.Sprintf("1 to %d printable characters of ASCII, without white space", maxName)
}

// Memberships returns the memberships of the key in the operator's notation.
func (s Spec) Memberships() (out []string) {
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

// ID identifies the key without revealing it.
func (s Spec) ID() string {
	id := sha256.Sum256([]byte("waybill-key-id\x00" + s.Key))
	return "key_" + hex.EncodeToString(id[:4])
}

// NewKeys makes a set of keys. Duplicate keys are an error.
func NewKeys(specs []Spec) (*Keys, error) {
	k := &Keys{salt: make([]byte, 32), byHash: make(map[[sha256.Size]byte]*Principal, len(specs))}
	if _, err := rand.Read(k.salt); err != nil {
		return nil, fmt.Errorf("salt for keys: %w", err)
	}
	for i, s := range specs {
		h := k.hash(s.Key)
		if k.byHash[h] != nil {
			return nil, fmt.Errorf("API key no. %d is a duplicate", i+1)
		}
		k.byHash[h] = &Principal{
			Tenant: s.Tenant, KeyID: s.ID(), TestKey: strings.HasPrefix(s.Key, TestKeyPrefix),
			User: s.User, Groups: s.Groups, Roles: s.Roles,
			scopes: s.Scopes, all: s.All,
		}
	}
	return k, nil
}

// hash is keyed with a random salt of this process, so that lookup timing reveals nothing
// about the keys.
func (k *Keys) hash(key string) [sha256.Size]byte {
	m := hmac.New(sha256.New, k.salt)
	m.Write([]byte(key))
	return [sha256.Size]byte(m.Sum(nil))
}

const bearer = "bearer "

// Authenticate returns the principal of an Authorization header.
func (k *Keys) Authenticate(header string) (*Principal, error) {
	if len(header) <= len(bearer) || !strings.EqualFold(header[:len(bearer)], bearer) {
		return nil, fault.New(fault.Unauthenticated, "send the header Authorization: Bearer <API key>")
	}
	p := k.byHash[k.hash(strings.TrimSpace(header[len(bearer):]))]
	if p == nil {
		return nil, fault.New(fault.Unauthenticated, "the API key is unknown")
	}
	return p, nil
}

// Sole reports whether all keys belong to one tenant.
func Sole(specs []Spec) bool {
	for _, s := range specs {
		if s.Tenant != specs[0].Tenant {
			return false
		}
	}
	return true
}

// Identify returns the tenant and the key id of an Authorization header, however the header is
// spelled. Both are empty if the credential is unknown.
func (k *Keys) Identify(header string) (tenant, keyID string) {
	p, err := k.Authenticate(header)
	if err != nil {
		return "", ""
	}
	return p.Tenant, p.KeyID
}
