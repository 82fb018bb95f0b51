package assets

import (
	"encoding/json"
	"time"

	"waybill.dev/waybill/internal/token"
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

// sign makes a token, by the recipe of interrupt tokens (OpenWOP envelope contract
// §17).
func sign(k token.Keys, c claim) string {
	c.Key = k.Current()
	body, _ := json.Marshal(c) // strings and numbers
	return k.Sign(body)
}

// verify reads a token; ok is false for anything but one of ours that is still
// good. It does not tell why.
func verify(k token.Keys, text string, now time.Time) (c claim, ok bool) {
	body, version, ok := k.Open(text)
	if !ok || strictjson.Read(body, &c) != nil || c.Key != version {
		return claim{}, false
	}
	if c.Expires != 0 && now.Unix() >= c.Expires {
		return claim{}, false
	}
	return c, true
}
