package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/examples"
	"waybill.dev/waybill/internal/host"
	"waybill.dev/waybill/protocol/wire"
)

const (
	demoWorkflow = "triage"
	demoMail     = "triage/mail.txt"
	demoTimeout  = 60 * time.Second
)

// demo runs the example over the public API, as a client would, and prints what
// came out.
func demo(ctx context.Context, out io.Writer, r host.Addresses, key string) error {
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	mail, err := examples.FS.ReadFile(demoMail)
	if err != nil {
		return err
	}
	c, err := client.New(r.HTTP, client.WithToken(key))
	if err != nil {
		return err
	}
	inputs, err := json.Marshal(map[string]string{"mail": string(mail)})
	if err != nil {
		return err
	}
	run, err := c.Start(ctx, client.StartRun{WorkflowID: demoWorkflow, Inputs: inputs, Tags: []string{"demo"}})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Run %s of workflow %q: a support mail goes in\n\n%s\n", run.RunID, demoWorkflow, indent(string(mail), 6))
	var events []client.Event
	for e, err := range c.Follow(ctx, run.RunID, client.FollowOptions{}) {
		if errors.Is(err, context.DeadlineExceeded) {
			return errors.New("the run did not end in time")
		}
		if err != nil {
			return err
		}
		events = append(events, e)
	}
	printEvents(out, events)
	curls(out, r, key, run.RunID)
	return nil
}

func printEvents(out io.Writer, events []client.Event) {
	fmt.Fprintln(out, "What the log recorded")
	chunks := 0
	for _, e := range events {
		if e.Type == wire.EventOutputChunk {
			chunks++
			continue
		}
		if chunks > 0 {
			fmt.Fprintf(out, "      …  output.chunk ×%d\n", chunks)
			chunks = 0
		}
		fmt.Fprintf(out, "  %5d  %-18s %s\n", e.Sequence, e.Type, e.NodeID)
	}
	for _, e := range events {
		if e.Type == wire.EventArtifactCreated {
			fmt.Fprintf(out, "\nThe envelope, checked and recorded\n\n%s\n", indent(pretty(e.Payload), 2))
		}
	}
}

func pretty(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

func indent(s string, n int) string {
	pad := strings.Repeat(" ", n)
	return pad + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n"+pad) + "\n"
}
