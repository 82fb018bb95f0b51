package outbound

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// HeaderValue is the id, or its digest when a header cannot carry it: node ids
// are the author's and may have any sign.
func HeaderValue(id string) string {
	const most = 255
	if len(id) <= most && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}
