package assets

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/strictjson"
)

// claim is what a token says: which asset, of whom.
type claim struct {
	// Key is the version of the key that signed it.
	Key    int    `json:"k"`
	Tenant string `json:"t"`
	Run    string `json:"r,omitempty"`
	Asset  string `json:"a"`
	// Expires is in Unix seconds; 0: it does not, as long as there is the asset.
	Expires int64 `json:"e,omitempty"`
}

// sign makes a token: base64url(claim) "." base64url(HMAC-SHA256), the recipe of
// interrupt tokens (OpenWOP envelope contract §17).
func (k Keys) sign(c claim) string {
	c.Key = k.current()
	body, _ := json.Marshal(c) // strings and numbers
	return base64.RawURLEncoding.EncodeToString(body) + "." + base64.RawURLEncoding.EncodeToString(mac(k[c.Key], body))
}

// maxToken bounds a token before it is decoded.
const maxToken = 2048

// verify reads a token; ok is false for anything but one of ours that is still
// good. It does not tell why.
func (k Keys) verify(token string, now time.Time) (c claim, ok bool) {
	head, tail, found := strings.Cut(token, ".")
	if !found || len(token) > maxToken {
		return claim{}, false
	}
	strict := base64.RawURLEncoding.Strict() // one spelling of each token
	body, err := strict.DecodeString(head)
	if err != nil {
		return claim{}, false
	}
	sum, err := strict.DecodeString(tail)
	if err != nil || strictjson.Read(body, &c) != nil {
		return claim{}, false
	}
	key, known := k[c.Key]
	if !known || !hmac.Equal(sum, mac(key, body)) {
		return claim{}, false
	}
	if c.Expires != 0 && now.Unix() >= c.Expires {
		return claim{}, false
	}
	return c, true
}

func mac(key, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(body)
	return h.Sum(nil)
}
