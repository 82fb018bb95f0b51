package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"waybill.dev/waybill/internal/token"
)

// purpose names the key of sessions among those that derive from the host's.
const purpose = "waybill console sessions"

// seals make an API key and the end of a session into a text that only hosts with the
// same keys can read. Nothing is stored, so every replica takes what another has made.
type seals struct{ keys token.Keys }

func newSeals(keys token.Keys) (seals, error) {
	if err := keys.Check(); err != nil {
		return seals{}, fmt.Errorf("console sessions: %w", err)
	}
	own, err := keys.For(purpose)
	return seals{own}, err
}

// stampBytes is the length of the session's end before the key.
const stampBytes = 8

// seal gives VERSION "." base64url(nonce, sealed).
func (s seals) seal(key string, ends time.Time) (string, error) {
	version := s.keys.Current()
	aead, err := box(s.keys[version])
	if err != nil {
		return "", err
	}
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+stampBytes+len(key)+aead.Overhead())
	if _, err := rand.Read(nonce); err != nil {
		return "", err
	}
	plain := binary.BigEndian.AppendUint64(nil, uint64(ends.Unix())) //nolint:gosec // G115: a time after 1970
	name := strconv.Itoa(version)
	sealed := aead.Seal(nonce, nonce, append(plain, key...), []byte(name))
	return name + "." + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// open gives the key and the end; ok is false for whatever this host cannot have made.
func (s seals) open(text string) (key string, ends time.Time, ok bool) {
	name, body, found := strings.Cut(text, ".")
	version, err := strconv.Atoi(name)
	secret := s.keys[version]
	if !found || err != nil || secret == nil || strings.ContainsAny(body, "\r\n") { // the decoder passes over these
		return "", time.Time{}, false
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil {
		return "", time.Time{}, false
	}
	aead, err := box(secret)
	if err != nil || len(sealed) < aead.NonceSize() {
		return "", time.Time{}, false
	}
	plain, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], []byte(name))
	if err != nil || len(plain) <= stampBytes {
		return "", time.Time{}, false
	}
	return string(plain[stampBytes:]), time.Unix(int64(binary.BigEndian.Uint64(plain)), 0), true //nolint:gosec // G115: as above
}

func box(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
