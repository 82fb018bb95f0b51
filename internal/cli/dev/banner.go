package dev

import (
	"fmt"
	"io"
	"strings"

	"waybill.dev/waybill/internal/host"
)

// shownKey is a key as the output shows it. Output may be stored, so it never contains a key of the
// operator.
func shownKey(key string) string {
	if key == host.DevKey {
		return key
	}
	return "<your key>"
}

// banner prints the addresses of the host. console is the link to the console; empty without a console.
func banner(out io.Writer, o options, r host.Addresses, console string) {
	durable := "every acknowledged write is on disk"
	if o.host.Log.Durability == host.DurabilityProcess {
		durable = "acknowledged writes survive the process, not a power cut"
	}
	fmt.Fprintf(out, "Waybill is ready (%d ms)\n\n", r.ReadyMs)
	if console != "" {
		fmt.Fprintf(out, "  web    %s\n", console)
	}
	fmt.Fprintf(out, "  REST   %s\n  gRPC   %s\n", r.HTTP, r.GRPC)
	if r.NATS != "" {
		fmt.Fprintf(out, "  NATS   %s\n", r.NATS)
	}
	fmt.Fprintf(out, "  key    %s\n  data   %s (%s)\n  model  %s\n", shownKey(host.FirstKey(o.host.Public.APIKeys)), o.host.DataDir, durable, o.host.Execution.Models.DefaultModel)
	if strings.HasPrefix(o.host.Execution.Models.DefaultModel, "sample/") {
		fmt.Fprint(out, "         sample is not a real model: it builds valid answers from the input, always the same\n")
	}
	fmt.Fprintln(out)
	if !o.demo {
		curls(out, r, host.FirstKey(o.host.Public.APIKeys), "")
	}
}

// curls prints commands for the next steps.
func curls(out io.Writer, r host.Addresses, key, runID string) {
	auth := "-H 'Authorization: Bearer " + shownKey(key) + "'"
	fmt.Fprintln(out, "Go on from here")
	fmt.Fprintf(out, "  curl -s %s -H 'Content-Type: application/json' \\\n    -d '{\"workflowId\":\"triage\",\"inputs\":{\"mail\":\"I was charged twice for order 1234, please refund me.\"}}' %s/v1/runs\n", auth, r.HTTP)
	if runID == "" {
		fmt.Fprintf(out, "  curl -s %s %s/v1/runs\n", auth, r.HTTP)
		fmt.Fprintf(out, "  curl -s %s/.well-known/openwop\n\n", r.HTTP)
		return
	}
	fmt.Fprintf(out, "  curl -s %s %s/v1/runs/%s\n", auth, r.HTTP, runID)
	fmt.Fprintf(out, "  curl -sN %s '%s/v1/runs/%s/events?streamMode=debug'\n\nCtrl-C stops the host; its state stays.\n", auth, r.HTTP, runID)
}
