package completion

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
)

// InvocationID names what a node asks for, the same for every attempt and for every
// repetition after a crash, so that a peer can recognise it (OpenWOP host contract
// §5.5). The ordinal counts what the node asks for; the peer is what is asked, such as
// mcp:files:read.
func InvocationID(t Task, ordinal int, peer string) string {
	sum := sha256.Sum256([]byte("openwop:activity:v2\x00" + strings.Join([]string{t.Tenant, t.RunID, t.Input.NodeID, strconv.Itoa(ordinal), peer}, "\x00")))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
