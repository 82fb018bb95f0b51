package interrupttoken

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
)

// seal hides whose run it is from the holder of a token, who may be anybody. The nonce
// is a keyed hash of what is sealed and of the interrupt: the same twice for the same
// text only, so that replicas agree, and two interrupts of a tenant do not look alike.
func seal(key []byte, interruptID, tenant string) ([]byte, error) {
	aead, err := box(key)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "%q %q", interruptID, tenant)
	nonce := h.Sum(nil)[:aead.NonceSize()]
	return aead.Seal(nonce, nonce, []byte(tenant), []byte(interruptID)), nil
}

func unseal(key []byte, interruptID string, sealed []byte) (tenant string, ok bool) {
	aead, err := box(key)
	if err != nil || len(sealed) < aead.NonceSize() {
		return "", false
	}
	text, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], []byte(interruptID))
	return string(text), err == nil
}

func box(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
