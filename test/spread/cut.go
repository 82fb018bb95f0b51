package main

import (
	"context"
	"net"
	"os"
	"time"

	"waybill.dev/waybill/test/spread/link"
)

// cuttable is the variable that puts a proxy before each process. Each line of the file "cut" in
// the data directory names two processes, such as "dispatcher0 nats2", whose link is cut.
// "cut.done" confirms the applied content.
const cuttable = "SPREAD_CUTTABLE"

// obeyCuts applies the file until ctx ends.
func (h *host) obeyCuts(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for content := ""; ; {
		if b, err := os.ReadFile(h.path("cut")); err == nil && string(b) != content {
			content = string(b)
			h.links.Cut(content)
			_ = os.WriteFile(h.path("cut.done"), b, 0o600) // the test that waits for it reports the failure
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// owner returns the name of the process that made a connection.
func (h *host) owner(c net.Conn) string { return link.Owner(c, h.pids()) }
