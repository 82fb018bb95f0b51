package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// MaxLen limits a token, in bytes. It is checked first. A token with the ids of a run and of a node
// is shorter, whatever characters they have.
const MaxLen = 4096

// strict accepts one encoding of each token.
var strict = base64.RawURLEncoding.Strict()

// Sign makes a token with the current key: base64url(payload) "." base64url(HMAC-SHA256 of
// the text before the dot) (OpenWOP host contract §6.5). The payload should name the version
// of the key, Current.
func (k Keys) Sign(payload []byte) string {
	head := strict.EncodeToString(payload)
	return head + "." + strict.EncodeToString(mac(k[k.Current()], head))
}

// Open returns the payload of a token and the version of the key that signed it; ok is false
// for a text that is not a token of these keys. It compares the hash in constant time before
// it reads anything else. So attempts reveal neither the versions nor parts of a hash.
func (k Keys) Open(token string) (payload []byte, version int, ok bool) {
	if len(token) > MaxLen || strings.ContainsAny(token, "\r\n") { // the decoder ignores these
		return nil, 0, false
	}
	head, tail, found := strings.Cut(token, ".")
	if !found {
		return nil, 0, false
	}
	sum, err := strict.DecodeString(tail)
	if err != nil {
		return nil, 0, false
	}
	for _, v := range k.versions() {
		if hmac.Equal(sum, mac(k[v], head)) {
			version, ok = v, true
		}
	}
	if !ok {
		return nil, 0, false
	}
	payload, err = strict.DecodeString(head)
	return payload, version, err == nil
}

func mac(key []byte, head string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(head))
	return h.Sum(nil)
}
