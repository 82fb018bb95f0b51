package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept/accepttest"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
	"waybill.dev/waybill/test/double/openaicompat"
)

// trip is one call from the caller's view.
type trip struct {
	// sent is when the caller started. asked is when the call could begin: for a run, when its
	// creation was acknowledged.
	sent, asked time.Time
	// first is when the first piece of the answer arrived; zero without streaming.
	first time.Time
	// answered is when the answer was complete.
	answered time.Time
}

// asker makes one call.
type asker func(ctx context.Context, id string) (trip, error)

// direct calls the double without a host, with the host's adapter.
func direct(url string, schema json.RawMessage) (asker, func(), error) {
	p, err := compat.New(compat.Config{ID: "double", BaseURL: url, APIKey: doubleKey})
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, id string) (trip, error) {
		t := trip{sent: time.Now()}
		t.asked = t.sent
		res, err := p.Call(ctx, provider.Request{
			Provider: "double", Model: openaicompat.DefaultModel, Schema: schema, SchemaName: "order", MaxTokens: 2000,
			Messages: []provider.Message{{Role: "user", Content: wire.AppendString(nil, question(id))}},
		}, func(d provider.Delta) error {
			if t.first.IsZero() && d.Text != "" {
				t.first = time.Now()
			}
			return nil
		})
		t.answered = time.Now()
		if err == nil && len(res.Text) != len(accepttest.Payload()) {
			err = fmt.Errorf("the answer has %d bytes", len(res.Text))
		}
		return t, err
	}, p.Close, nil
}

// modelWorkflow requests a value of the schema once. With streaming, the answer's pieces are
// recorded as they arrive.
func modelWorkflow(streaming bool) (id string, doc []byte) {
	id = fmt.Sprintf("bench-model-%t", streaming)
	return id, fmt.Appendf(nil, `{"id":%q,"name":"bench","version":"1","nodes":[{"id":"ask","typeId":"core.ai.structuredOutput","name":"ask",`+
		`"position":{"x":0,"y":0},"config":{"prompt":"{{question}}","maxTokens":2000,"expectsStreaming":%t,"outputSchema":%s},"inputs":{}}],`+
		`"edges":[],"triggers":[],"variables":[{"name":"question","type":"string","required":true}],"metadata":{},"settings":{}}`,
		id, streaming, accepttest.Schema)
}

// hosted calls the model through a run of the host, and follows its events.
func (c *client) hosted(streaming bool) asker {
	workflow, _ := modelWorkflow(streaming)
	mode := "updates"
	if streaming {
		mode = "debug"
	}
	return func(ctx context.Context, id string) (trip, error) {
		t := trip{sent: time.Now()}
		runID, err := c.create(ctx, workflow, question(id))
		if err != nil {
			return t, err
		}
		t.asked = time.Now()
		err = c.follow(ctx, runID, mode, func(event string, _ []byte) bool {
			switch event {
			case string(wire.EventOutputChunk):
				if t.first.IsZero() {
					t.first = time.Now()
				}
			case string(wire.EventRunCompleted):
				t.answered = time.Now()
			}
			return true
		})
		if err == nil && t.answered.IsZero() {
			err = fmt.Errorf("run %s did not complete", runID)
		}
		return t, err
	}
}

// create starts a run with a question.
func (c *client) create(ctx context.Context, workflow, ask string) (runID string, err error) {
	return runIDIn(c.do(ctx, http.MethodPost, "/v1/runs", fmt.Appendf(nil, `{"workflowId":%q,"inputs":{"question":%s}}`, workflow, wire.AppendString(nil, ask))))
}

// follow streams a run's events until the stream ends or see returns false.
func (c *client) follow(ctx context.Context, runID, mode string, see func(event string, data []byte) bool) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/v1/runs/"+runID+"/events?streamMode="+mode, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+devKey)
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return errors.New("follow run " + runID + ": " + res.Status)
	}
	var event string
	s := lines(res)
	for s.Scan() {
		line := s.Bytes()
		if name, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
			event = string(name)
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && !see(event, data) {
			return nil
		}
	}
	return s.Err()
}

// lines reads a stream whose lines may be as long as an event.
func lines(res *http.Response) *bufio.Scanner {
	s := bufio.NewScanner(res.Body)
	s.Buffer(make([]byte, 0, 8<<10), 4<<20)
	return s
}

// recorded returns all events of a run started by a probe.
func (c *client) recorded(ctx context.Context, probe string) (string, error) {
	workflow, _ := modelWorkflow(false)
	runID, err := c.create(ctx, workflow, probe)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	err = c.follow(ctx, runID, "debug", func(_ string, data []byte) bool {
		all.Write(data)
		return true
	})
	return all.String(), err
}
