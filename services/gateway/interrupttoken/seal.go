package interrupttoken

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
)

// seal encrypts the tenant, because the holder of a token may be unauthenticated. The nonce
// is a keyed hash of the interrupt id and the tenant. Replicas therefore produce the same
// ciphertext, and two interrupts of a tenant have different ones.
func seal(key []byte, interruptID, tenant string) ([]byte, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "%q %q", interruptID, tenant)
	nonce := h.Sum(nil)[:aead.NonceSize()]
	return aead.Seal(nonce, nonce, []byte(tenant), []byte(interruptID)), nil
}

func unseal(key []byte, interruptID string, sealed []byte) (tenant string, ok bool) {
	aead, err := newAEAD(key)
	if err != nil || len(sealed) < aead.NonceSize() {
		return "", false
	}
	text, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], []byte(interruptID))
	return string(text), err == nil
}

// newAEAD returns a cipher whose caller passes the nonce.
func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
