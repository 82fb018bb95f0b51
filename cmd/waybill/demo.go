package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"waybill.dev/waybill/examples"
)

type printer = io.Writer

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
func banner(out printer, o devOptions, r readyInfo, console string) {
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
func demo(ctx context.Context, out printer, r readyInfo, key string) error {
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	mail, err := examples.FS.ReadFile(demoMail)
	if err != nil {
		return err
	}
	c := client{base: r.HTTP, key: key}
	body, err := json.Marshal(map[string]any{"workflowId": demoWorkflow, "inputs": map[string]string{"mail": string(mail)}, "tags": []string{"demo"}})
	if err != nil {
		return err
	}
	var run struct {
		RunID string `json:"runId"`
	}
	if err := c.do(ctx, http.MethodPost, "/v1/runs", body, &run); err != nil {
		return err
	}
	fmt.Fprintf(out, "Run %s of workflow %q: a support mail goes in\n\n%s\n", run.RunID, demoWorkflow, indent(string(mail), 6))
	events, err := c.follow(ctx, run.RunID)
	if err != nil {
		return err
	}
	printEvents(out, events)
	curls(out, r, key, run.RunID)
	return nil
}

// demoEvent is what the demo shows of an event.
type demoEvent struct {
	Sequence int             `json:"sequence"`
	Type     string          `json:"type"`
	NodeID   string          `json:"nodeId"`
	Payload  json.RawMessage `json:"payload"`
}

func printEvents(out printer, events []demoEvent) {
	fmt.Fprintln(out, "What the log recorded")
	chunks := 0
	for _, e := range events {
		if e.Type == "output.chunk" {
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
		if e.Type == "artifact.created" {
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
func curls(out printer, r readyInfo, key, runID string) {
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

// client is the public REST API as the demo uses it.
type client struct{ base, key string }

func (c client) do(ctx context.Context, method, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, b)
	}
	return json.Unmarshal(b, into)
}

// follow polls a run's events to its end.
func (c client) follow(ctx context.Context, runID string) ([]demoEvent, error) {
	var all []demoEvent
	for last := -1; ; {
		var page struct {
			Events       []demoEvent `json:"events"`
			IsComplete   bool        `json:"isComplete"`
			LastEventSeq int         `json:"lastEventSeq"`
		}
		if err := c.do(ctx, http.MethodGet, fmt.Sprintf("/v1/runs/%s/events/poll?lastSequence=%d&timeout=10", runID, last), nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Events...)
		last = page.LastEventSeq
		if page.IsComplete {
			return all, nil
		}
		if ctx.Err() != nil {
			return nil, errors.New("the run did not end in time")
		}
	}
}
