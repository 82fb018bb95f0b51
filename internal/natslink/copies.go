package natslink

import (
	"fmt"

	js "github.com/nats-io/nats.go/jetstream"
)

// Copies says how safely a stream is to be kept.
type Copies struct {
	// Replicas is how many copies there are to be at least.
	Replicas int
	// InSync is how many of them must be in sync; 0: a majority.
	InSync int
}

// Check tells what a stream lacks in copies; nil: nothing.
func (c Copies) Check(info *js.StreamInfo) error {
	there := info.Config.Replicas
	if there < c.Replicas {
		return fmt.Errorf("stream %s has %d copies, and %d are wanted", info.Config.Name, there, c.Replicas)
	}
	wanted := c.InSync
	if wanted == 0 {
		wanted = there/2 + 1
	}
	if n := inSync(info.Cluster); n < wanted {
		return fmt.Errorf("of stream %s %d of its %d copies are in sync, and %d must be", info.Config.Name, n, there, wanted)
	}
	return nil
}

// inSync counts the copies that have all that was acknowledged: the leader's, and those
// of its followers that are there and have caught up.
func inSync(c *js.ClusterInfo) int {
	switch {
	case c == nil: // one server that is no cluster
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
