package main

import (
	"context"
	"net"
	"os"
	"time"

	"waybill.dev/waybill/test/spread/link"
)

// cuttable is the variable that has a proxy put before each process. From then on lines of
// two names in the file "cut" of the data directory, such as "dispatcher0 nats2", say which
// ways are cut; "cut.done" repeats what holds.
const cuttable = "SPREAD_CUTTABLE"

// obeyCuts does what the file says until ctx ends.
func (h *host) obeyCuts(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for told := ""; ; {
		if b, err := os.ReadFile(h.path("cut")); err == nil && string(b) != told {
			told = string(b)
			h.links.Cut(told)
			_ = os.WriteFile(h.path("cut.done"), b, 0o600) // who waits for it says that it does not come
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// owner names the process that has made a connection.
func (h *host) owner(c net.Conn) string { return link.Owner(c, h.pids()) }
