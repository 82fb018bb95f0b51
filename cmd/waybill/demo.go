package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/examples"
	"waybill.dev/waybill/protocol/wire"
)

// readyInfo is where the host can be reached.
type readyInfo struct {
	HTTP    string `json:"http"`
	GRPC    string `json:"grpc"`
	NATS    string `json:"nats,omitempty"`
	Metrics string `json:"metrics,omitempty"`
	// Console is its address, without a code.
	Console string `json:"console,omitempty"`
	PID     int    `json:"pid"`
	ReadyMs int64  `json:"readyMs"`
}

// write leaves the addresses in a file, whole or not at all.
func (r readyInfo) write(file string) error {
	if file == "" {
		return nil
	}
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("render ready file: %w", err)
	}
	tmp := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".tmp")
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("--ready-file: %w", err)
	}
	if err := os.Rename(tmp, file); err != nil {
		return fmt.Errorf("--ready-file: %w", err)
	}
	return nil
}

// firstKey is the key of the first KEY=TENANT:SCOPES.
func firstKey(specs []string) string {
	key, _, _ := strings.Cut(specs[0], "=")
	return key
}

// devKey is the key of a host that was given none. Everybody knows it.
const devKey = "dev-key"

// shownKey is what the output says of a key. What a host writes may be kept, so a key
// that was given is not part of it.
func shownKey(key string) string {
	if key == devKey {
		return key
	}
	return "<your key>"
}

// banner says where the host is; console is the link to the console, empty if there is
// none.
func banner(out io.Writer, o devOptions, r readyInfo, console string) {
	durable := "every acknowledged write is on disk"
	if o.durability == durabilityProcess {
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
	fmt.Fprintf(out, "  key    %s\n  data   %s (%s)\n  model  %s\n", shownKey(firstKey(o.apiKeys)), o.dataDir, durable, o.models.defaultModel)
	if strings.HasPrefix(o.models.defaultModel, "sample/") {
		fmt.Fprint(out, "         sample is no model: it makes schema-valid answers out of the input, always the same\n")
	}
	fmt.Fprintln(out)
	if !o.demo {
		curls(out, r, firstKey(o.apiKeys), "")
	}
}

const (
	demoWorkflow = "triage"
	demoMail     = "triage/mail.txt"
	demoTimeout  = 60 * time.Second
)

// demo runs the example over the public API, as a client would, and prints what
// came out.
func demo(ctx context.Context, out io.Writer, r readyInfo, key string) error {
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

// curls prints how to go on.
func curls(out io.Writer, r readyInfo, key, runID string) {
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
