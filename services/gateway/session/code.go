package session

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

// codeLifetime is the validity of a one-time code.
const codeLifetime = time.Hour

// codes are one-time codes, each for a key. They are kept in the memory of the process that
// made them.
type codes struct {
	mu   sync.Mutex // guards made
	made map[[sha256.Size]byte]code
}

type code struct {
	key  string
	ends time.Time
}

// Mint makes a code that signs in once with a key, for a link that the host prints on its
// own terminal.
func (k *Keeper) Mint(key string) string {
	text := rand.Text()
	k.codes.mu.Lock()
	defer k.codes.mu.Unlock()
	if k.codes.made == nil {
		k.codes.made = map[[sha256.Size]byte]code{}
	}
	k.codes.made[sha256.Sum256([]byte(text))] = code{key, k.clock().Add(codeLifetime)}
	return text
}

// redeem returns the key of a code and invalidates the code.
func (c *codes) redeem(text string, now time.Time) (key string, ok bool) {
	sum := sha256.Sum256([]byte(text))
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.made[sum]
	delete(c.made, sum)
	return found.key, ok && now.Before(found.ends)
}
