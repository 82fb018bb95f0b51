package subscription

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Secrets derives the secrets of subscriptions from the host's key, the tenant, the
// subscription's random id and the generation. Secrets are never stored.
type Secrets struct{ key []byte }

// NewSecrets derives the root key of all secrets from the host's key.
func NewSecrets(hostKey []byte) (*Secrets, error) {
	key, err := hkdf.Key(sha256.New, hostKey, nil, "waybill webhook secrets", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive key of webhook secrets: %w", err)
	}
	return &Secrets{key}, nil
}

// Secret returns the secret of a generation: 64 hex digits.
func (s *Secrets) Secret(tenant, id string, generation int) string {
	m := hmac.New(sha256.New, s.key)
	fmt.Fprintf(m, "%s\x00%s\x00%d", tenant, id, generation)
	return hex.EncodeToString(m.Sum(nil))
}

// Key returns the identification of the secret of a generation.
func (s *Secrets) Key(tenant, id string, generation int) Key {
	return Key{Generation: generation, Fingerprint: fingerprint(s.Secret(tenant, id, generation))}
}

// ErrOtherKey means that the secret was made with another host key.
var ErrOtherKey = errors.New("the host's key has changed since the secret was made; rotate the secret")

// Of returns the secret that a subscription's key identifies. Errors: ErrOtherKey.
func (s *Secrets) Of(sub *Subscription, k Key) (string, error) {
	secret := s.Secret(sub.Tenant, sub.ID, k.Generation)
	if fingerprint(secret) != k.Fingerprint {
		return "", ErrOtherKey
	}
	return secret, nil
}

func fingerprint(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:4])
}
