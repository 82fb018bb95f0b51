// Command waybill is the OpenWOP host and its tools in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/gcpace"
)

// The host's live heap is small, and most of what a request makes is gone with it. GOGC in the
// environment wins.
const (
	heapGoal  = 68 << 20
	gcPercent = 300
)

func main() {
	if os.Getenv("GOGC") == "" {
		gcpace.Start(heapGoal, gcPercent)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { // a second signal ends a shutdown that hangs
		stop()
		signal.Reset(os.Interrupt)
	})
	status := execute(ctx, root(os.Stdout, os.Stderr))
	if status == exit.Done && len(interrupted) > 0 {
		status = exit.Interrupted
	}
	os.Exit(status)
}
