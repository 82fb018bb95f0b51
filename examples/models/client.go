package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// client is the public REST API as the example uses it.
type client struct{ base, key string }

// event is a recorded event. raw is the document as it came.
type event struct {
	Type      string          `json:"type"`
	NodeID    string          `json:"nodeId"`
	Timestamp time.Time       `json:"timestamp"`
	Payload   map[string]any  `json:"payload"`
	raw       json.RawMessage // of a page of a poll
}

// runTimeout bounds one run.
const runTimeout = 30 * time.Second

// run starts a run of a workflow and reads its events to the end.
func (c client) run(ctx context.Context, workflow string) (runID string, log []event, err error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]string{"workflowId": workflow})
	if err != nil {
		return "", nil, err
	}
	var created struct {
		RunID string `json:"runId"`
	}
	if err := c.do(ctx, http.MethodPost, "/v1/runs", body, &created); err != nil {
		return "", nil, err
	}
	for last := -1; ; {
		var page struct {
			Events       []json.RawMessage `json:"events"`
			IsComplete   bool              `json:"isComplete"`
			LastEventSeq int               `json:"lastEventSeq"`
		}
		path := fmt.Sprintf("/v1/runs/%s/events/poll?lastSequence=%d&timeout=5", created.RunID, last)
		if err := c.do(ctx, http.MethodGet, path, nil, &page); err != nil {
			return created.RunID, log, err
		}
		for _, raw := range page.Events {
			e := event{raw: raw}
			if err := read(raw, &e); err != nil {
				return created.RunID, log, fmt.Errorf("read event %s: %w", raw, err)
			}
			log = append(log, e)
		}
		if last = page.LastEventSeq; page.IsComplete {
			return created.RunID, log, nil
		}
	}
}

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
	if res.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, b)
	}
	return read(b, into)
}

// read keeps numbers as they are written.
func read(doc []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	return d.Decode(into)
}
