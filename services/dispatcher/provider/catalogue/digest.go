package catalogue

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/gowebpki/jcs"
)

// Digest identifies the catalogue's content: "sha256:" and the hash of its canonical form (RFC
// 8785). Formatting and the order of models, names and capabilities do not affect it.
func (c *Catalogue) Digest() string { return c.digest() }

func (c *Catalogue) computeDigest() string {
	b, err := json.Marshal(c.doc)
	if err == nil {
		b, err = jcs.Transform(b)
	}
	if err != nil { // a parsed document always renders
		panic("catalogue: canonical form: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
