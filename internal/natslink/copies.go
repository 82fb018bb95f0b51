package natslink

import (
	"fmt"

	js "github.com/nats-io/nats.go/jetstream"
)

// Copies is the required replication of a stream.
type Copies struct {
	// Replicas is the minimum number of copies.
	Replicas int
	// InSync is how many of them must be in sync; 0 means a majority.
	InSync int
}

// Check returns what a stream lacks; nil if nothing.
func (c Copies) Check(info *js.StreamInfo) error {
	there := info.Config.Replicas
	if there < c.Replicas {
		return fmt.Errorf("stream %s has %d copies, want %d", info.Config.Name, there, c.Replicas)
	}
	wanted := c.InSync
	if wanted == 0 {
		wanted = there/2 + 1
	}
	if n := inSync(info.Cluster); n < wanted {
		return fmt.Errorf("stream %s: %d of %d copies are in sync, want %d", info.Config.Name, n, there, wanted)
	}
	return nil
}

// inSync counts the copies with everything that was acknowledged: the leader's, and those of online
// followers that have caught up.
func inSync(c *js.ClusterInfo) int {
	switch {
	case c == nil: // a single server
		return 1
	case c.Leader == "":
		return 0
	}
	n := 1
	for _, p := range c.Replicas {
		if p.Current && !p.Offline {
			n++
		}
	}
	return n
}
