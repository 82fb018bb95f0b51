package assets

import (
	"encoding/json"
	"time"

	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/protocol/strictjson"
)

// tokenClaims identify the asset of a token.
type tokenClaims struct {
	// Key is the version of the key that signed it.
	Key    int    `json:"k"`
	Tenant string `json:"t"`
	Run    string `json:"r,omitempty"`
	Asset  string `json:"a"`
	// Expires is in Unix seconds; 0 means never.
	Expires int64 `json:"e,omitempty"`
}

// sign makes a token in the format of interrupt tokens (OpenWOP envelope contract §17).
func sign(k token.Keys, c tokenClaims) string {
	c.Key = k.Current()
	body, _ := json.Marshal(c) // strings and numbers
	return k.Sign(body)
}

// verify reads a token; ok is false for a token that is malformed, forged or expired.
func verify(k token.Keys, text string, now time.Time) (c tokenClaims, ok bool) {
	body, version, ok := k.Open(text)
	if !ok || strictjson.Read(body, &c) != nil || c.Key != version {
		return tokenClaims{}, false
	}
	if c.Expires != 0 && now.Unix() >= c.Expires {
		return tokenClaims{}, false
	}
	return c, true
}
