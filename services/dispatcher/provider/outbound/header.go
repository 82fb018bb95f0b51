package outbound

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// HeaderValue returns the id, or its digest if it is not a valid header value. Node ids come from
// authors and may contain any character.
func HeaderValue(id string) string {
	const most = 255
	if len(id) <= most && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}
