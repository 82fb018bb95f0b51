package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"waybill.dev/waybill/client"
)

// event is a recorded event with its parsed payload. raw is the original document.
type event struct {
	Type      string          `json:"type"`
	NodeID    string          `json:"nodeId"`
	Timestamp time.Time       `json:"timestamp"`
	Payload   map[string]any  `json:"payload"`
	raw       json.RawMessage // of the stream
}

// runTimeout limits one run.
const runTimeout = 30 * time.Second

// follow starts a run of a workflow and reads its events to the end.
func follow(ctx context.Context, c *client.Client, workflow string) (runID string, log []event, err error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	created, err := c.Start(ctx, client.StartRun{WorkflowID: workflow})
	if err != nil {
		return "", nil, err
	}
	for recorded, err := range c.Follow(ctx, created.RunID, client.FollowOptions{}) {
		if err != nil {
			return created.RunID, log, err
		}
		e := event{raw: recorded.Doc}
		if err := read(recorded.Doc, &e); err != nil {
			return created.RunID, log, fmt.Errorf("read event %s: %w", recorded.Doc, err)
		}
		log = append(log, e)
	}
	return created.RunID, log, nil
}

// read decodes a document without rounding numbers.
func read(doc []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	return d.Decode(into)
}
