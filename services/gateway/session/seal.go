package session

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"waybill.dev/waybill/internal/token"
)

// purpose labels the key of sessions among the keys that derive from the host's.
const purpose = "waybill console sessions"

// seals encrypt an API key and the expiry of a session. Only hosts with the same keys can
// decrypt it. Nothing is stored, so every replica accepts the cookies of the others.
type seals struct{ keys token.Keys }

func newSeals(keys token.Keys) (seals, error) {
	if err := keys.Check(); err != nil {
		return seals{}, fmt.Errorf("console sessions: %w", err)
	}
	own, err := keys.For(purpose)
	return seals{own}, err
}

// expiryBytes is the length of the expiry before the key.
const expiryBytes = 8

// seal returns VERSION "." base64url(nonce, ciphertext). The text is valid for cookies of one name
// only.
func (s seals) seal(cookie, key string, ends time.Time) (string, error) {
	version := s.keys.Current()
	aead, err := newAEAD(s.keys[version])
	if err != nil {
		return "", err
	}
	plain := binary.BigEndian.AppendUint64(nil, uint64(ends.Unix())) //nolint:gosec // G115: a time after 1970
	name := strconv.Itoa(version)
	sealed := aead.Seal(nil, nil, append(plain, key...), []byte(name+cookie)) //nolint:gosec // G407: the AEAD draws a random nonce
	return name + "." + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// open returns the key and the expiry. ok is false if this host cannot have made the text.
func (s seals) open(cookie, text string) (key string, ends time.Time, ok bool) {
	name, body, found := strings.Cut(text, ".")
	version, err := strconv.Atoi(name)
	secret := s.keys[version]
	if !found || err != nil || secret == nil || strings.ContainsAny(body, "\r\n") { // the decoder would ignore these
		return "", time.Time{}, false
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil {
		return "", time.Time{}, false
	}
	aead, err := newAEAD(secret)
	if err != nil {
		return "", time.Time{}, false
	}
	plain, err := aead.Open(nil, nil, sealed, []byte(name+cookie))
	if err != nil || len(plain) <= expiryBytes {
		return "", time.Time{}, false
	}
	return string(plain[expiryBytes:]), time.Unix(int64(binary.BigEndian.Uint64(plain)), 0), true //nolint:gosec // G115: as above
}

// newAEAD returns a cipher that draws a random nonce and puts it before the ciphertext.
func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
