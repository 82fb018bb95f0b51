package subscription

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Secrets makes the secrets of subscriptions. They are kept nowhere: each follows from
// the host's key, the tenant, the subscription's random id and the generation.
type Secrets struct{ key []byte }

// NewSecrets derives the key of all secrets from the host's.
func NewSecrets(hostKey []byte) (*Secrets, error) {
	key, err := hkdf.Key(sha256.New, hostKey, nil, "waybill webhook secrets", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("key of webhook secrets: %w", err)
	}
	return &Secrets{key}, nil
}

// Secret is the secret of a generation: 64 hex digits.
func (s *Secrets) Secret(tenant, id string, generation int) string {
	m := hmac.New(sha256.New, s.key)
	fmt.Fprintf(m, "%s\x00%s\x00%d", tenant, id, generation)
	return hex.EncodeToString(m.Sum(nil))
}

// Key names the secret of a generation.
func (s *Secrets) Key(tenant, id string, generation int) Key {
	return Key{Generation: generation, Fingerprint: fingerprint(s.Secret(tenant, id, generation))}
}

// ErrOtherKey says that the host's key is not the one the secret was made with.
var ErrOtherKey = errors.New("the host's key is another one than when the secret was made; rotate the secret")

// Of is the secret of a key that a subscription holds. Errors: ErrOtherKey.
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
