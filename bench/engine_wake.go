package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/test/double/openaicompat"
)

// wakeRow is the time from the answer of a waiting run to its next question. Both the gateway that
// takes the answer and the dispatcher read the run.
type wakeRow struct {
	events int
	took   samples
}

// wakeSizes are the lengths of the runs, in events.
var wakeSizes = []int{100, 1_000, 10_000} //nolint:gochecknoglobals // a constant

// wakes answers the gates of long runs, one after the other.
func (r *engineRig) wakes(ctx context.Context, o options) ([]wakeRow, error) {
	var rows []wakeRow
	for _, events := range wakeSizes {
		if o.quick {
			events /= 10
		}
		row := wakeRow{events: events}
		if err := r.wake(ctx, &row, max(o.often(40), 4)); err != nil {
			return nil, fmt.Errorf("wakes of a run of %d events: %w", events, err)
		}
		row.took.sorted()
		rows = append(rows, row)
	}
	return rows, nil
}

// gated is a workflow of parallel models, and a chain of gates that follows them.
func gated(id string, models, gates int) []byte {
	var nodes, edges []string
	node := func(id, what string) {
		nodes = append(nodes, fmt.Sprintf(`{"id":%q,%s,"name":"n","position":{"x":0,"y":0},"inputs":{}}`, id, what))
	}
	edge := func(from, to string) {
		edges = append(edges, fmt.Sprintf(`{"id":"e%d","sourceNodeId":%q,"targetNodeId":%q}`, len(edges), from, to))
	}
	for i := range models {
		name := fmt.Sprintf("n%03d", i)
		node(name, askNode)
		edge(name, "g000")
	}
	for i := range gates {
		node(fmt.Sprintf("g%03d", i), gateNode)
		if i > 0 {
			edge(fmt.Sprintf("g%03d", i-1), fmt.Sprintf("g%03d", i))
		}
	}
	return fmt.Appendf(nil, `{"id":%q,"name":"bench","version":"1","nodes":[%s],"edges":[%s],"triggers":[],"variables":[],"metadata":{},"settings":{}}`,
		id, strings.Join(nodes, ","), strings.Join(edges, ","))
}

func (r *engineRig) wake(ctx context.Context, row *wakeRow, answers int) error {
	const models = 10
	id := fmt.Sprintf("bench-wake-%d", row.events)
	r.reply = openaicompat.Reply{Pieces: slices.Repeat([]string{word}, max(row.events/models, 1))}
	if err := r.deploy(ctx, gated(id, models, answers+1)); err != nil {
		return err
	}
	runID, err := r.created(ctx, id)
	if err != nil {
		return err
	}
	last, err := r.waitForQuestion(ctx, runID, -1, "g000")
	if err != nil {
		return err
	}
	row.events = last + 1
	for i := range answers {
		start := time.Now()
		path := fmt.Sprintf("/v1/runs/%s/interrupts/g%03d", runID, i)
		if _, err := r.client.do(ctx, http.MethodPost, path, []byte(`{"resumeValue":{"action":"accept"}}`)); err != nil {
			return err
		}
		if last, err = r.waitForQuestion(ctx, runID, last, fmt.Sprintf("g%03d", i+1)); err != nil {
			return err
		}
		row.took = append(row.took, time.Since(start))
	}
	_, err = r.client.do(ctx, http.MethodPost, "/v1/runs/"+runID+"/cancel", []byte(`{}`))
	return err
}

// waitForQuestion waits until a gate of a run asks its question, and returns the run's last sequence.
func (r *engineRig) waitForQuestion(ctx context.Context, runID string, last int, gate string) (int, error) {
	for {
		b, err := r.client.do(ctx, http.MethodGet, fmt.Sprintf("/v1/runs/%s/events/poll?lastSequence=%d&timeout=30&limit=5000", runID, last), nil)
		if err != nil {
			return 0, err
		}
		page, err := pageOf(b)
		if err != nil {
			return 0, err
		}
		if page.IsComplete {
			return 0, fmt.Errorf("run %s ended before gate %s", runID, gate)
		}
		for _, e := range page.Events {
			if e.Type == "interrupt.requested" && e.NodeID == gate {
				return page.LastEventSeq, nil
			}
		}
		last = max(last, page.LastEventSeq)
	}
}
