package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"waybill.dev/waybill/test/double/openaicompat"
)

// engineFigures are the figures of single runs that are large, wide or waiting.
type engineFigures struct {
	load  string // other load of the machine
	forks []forkRow
	pages []pageRow
	wide  []wideRow
	wait  waitRow
	wakes []wakeRow
	// timers are measured on a separate host.
	timers timersRow
}

// forkRow is the time until forks of a run are acknowledged.
type forkRow struct {
	mode   string
	from   int
	events int
	took   samples
}

// pageRow is the time of pages of a run's events at one position.
type pageRow struct {
	where  string
	events int
	took   samples
}

// wideRow compares a run of one branch with runs of many equal branches.
type wideRow struct {
	branch   string
	branches int
	one, all samples
}

// waitRow compares a host with and without waiting runs.
type waitRow struct {
	runs          int
	before, after proc
	// alive and held are the heap after a collection, in KB, without and with all of them.
	alive, held float64
	// idle and busy are the CPU per second, without and with all of them.
	idle, busy time.Duration
}

const (
	pageSize = 100
	// word is a piece of the double's answer.
	word = "word "
)

// engine measures the section on one host.
func engine(ctx context.Context, r *report) error {
	f := &r.engine
	f.load = busy()
	var err error
	if r.options.timers > 0 {
		if f.timers, err = timers(ctx, r.options); err != nil {
			return err
		}
	}
	if r.options.only == sectionTimers {
		return nil
	}
	rig, err := newEngineRig(ctx, r.options)
	if err != nil {
		return err
	}
	defer rig.stop()
	// Waiting first: memory is meaningful only while the host has done little else.
	if f.wait, err = rig.waiting(ctx, r.options); err != nil {
		return err
	}
	if f.wide, err = rig.wide(ctx, r.options); err != nil {
		return err
	}
	forked, paged := 10_000, 100_000
	if r.options.quick {
		rig.models, forked, paged = 20, 500, 1000
	}
	if f.forks, err = rig.forks(ctx, r.options, forked); err != nil {
		return err
	}
	if f.pages, err = rig.pages(ctx, r.options, paged); err != nil {
		return err
	}
	f.wakes, err = rig.wakes(ctx, r.options)
	return err
}

// engineRig is a host and a double with answers of a given number of words.
type engineRig struct {
	host   *host
	client *client
	double *openaicompat.Server
	reply  openaicompat.Reply
	// models is the number of model nodes in a long run: many, so that the end events of nodes,
	// which hold the whole text, are a small part of a page.
	models int
}

// often is the number of repetitions of a single measurement.
func (o options) often(n int) int {
	if o.quick {
		return n / 10
	}
	return n
}

func newEngineRig(ctx context.Context, o options) (*engineRig, error) {
	rig := &engineRig{models: 200}
	rig.double = openaicompat.New(openaicompat.Options{
		Key:    doubleKey,
		Answer: func(openaicompat.Recorded) openaicompat.Reply { return rig.reply },
		Watch:  func(openaicompat.Watched) {},
	})
	var err error
	rig.host, err = startHostIn(ctx, []string{"WAYBILL_PROVIDER_DOUBLE_KEY=" + doubleKey}, o.bin, o.dir,
		"--provider", "double="+rig.double.URL(), "--default-model", "double/"+openaicompat.DefaultModel, "--metrics-addr", "127.0.0.1:0")
	if err != nil {
		rig.double.Close()
		return nil, err
	}
	rig.client = newClient(rig.host.ready.HTTP, 256)
	return rig, nil
}

func (r *engineRig) stop() {
	r.client.http.CloseIdleConnections()
	r.host.stop()
	r.double.Close()
}

// parallelNodes returns a workflow of n parallel nodes.
func parallelNodes(id, node string, n int) []byte {
	nodes := make([]string, n)
	for i := range nodes {
		nodes[i] = fmt.Sprintf(`{"id":"n%03d",%s,"name":"n","position":{"x":0,"y":0},"inputs":{}}`, i, node)
	}
	return fmt.Appendf(nil, `{"id":%q,"name":"bench","version":"1","nodes":[%s],"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`,
		id, strings.Join(nodes, ","))
}

const (
	askNode   = `"typeId":"core.ai.callPrompt","config":{"prompt":"Say words.","expectsStreaming":true}`
	delayNode = `"typeId":"core.delay","config":{"ms":200}`
	gateNode  = `"typeId":"core.approvalGate","config":{"title":"Ship it?","actions":["accept","reject"]}`
)

func (r *engineRig) deploy(ctx context.Context, doc []byte) error {
	_, err := r.client.do(ctx, http.MethodPost, "/v1/workflows", doc)
	return err
}

// created starts a run.
func (r *engineRig) created(ctx context.Context, workflow string) (string, error) {
	return runIDIn(r.client.do(ctx, http.MethodPost, "/v1/runs", fmt.Appendf(nil, `{"workflowId":%q}`, workflow)))
}

// eventPage is one page of a run's events.
type eventPage struct {
	Events []struct {
		Type   string `json:"type"`
		NodeID string `json:"nodeId"`
	} `json:"events"`
	IsComplete   bool `json:"isComplete"`
	LastEventSeq int  `json:"lastEventSeq"`
}

func pageOf(b []byte) (p eventPage, err error) {
	err = json.Unmarshal(b, &p)
	return p, err
}

// page reads one page of a run's events.
func (c *client) page(ctx context.Context, runID string, after, wait, limit int) (last int, complete bool, err error) {
	b, err := c.do(ctx, http.MethodGet, fmt.Sprintf("/v1/runs/%s/events/poll?lastSequence=%d&timeout=%d&limit=%d", runID, after, wait, limit), nil)
	if err != nil {
		return 0, false, err
	}
	page, err := pageOf(b)
	return page.LastEventSeq, page.IsComplete, err
}

// completed waits until a run has ended, and returns its last sequence.
func (r *engineRig) completed(ctx context.Context, runID string) (last int, err error) {
	for last, done := -1, false; ; {
		if last, done, err = r.client.page(ctx, runID, last, 30, 5000); err != nil || done {
			return last, err
		}
	}
}

// long makes a run of about this many events: parallel models that stream words.
func (r *engineRig) long(ctx context.Context, events int) (runID string, last int, err error) {
	id := fmt.Sprintf("bench-long-%d", events)
	r.reply = openaicompat.Reply{Pieces: slices.Repeat([]string{word}, events/r.models)}
	if err := r.deploy(ctx, parallelNodes(id, askNode, r.models)); err != nil {
		return "", 0, err
	}
	if runID, err = r.created(ctx, id); err != nil {
		return "", 0, err
	}
	last, err = r.completed(ctx, runID)
	return runID, last, err
}

// forks forks one long run: a full replay, which copies nothing, and a branch at its end, which
// copies everything.
func (r *engineRig) forks(ctx context.Context, o options, events int) ([]forkRow, error) {
	runID, last, err := r.long(ctx, events)
	if err != nil {
		return nil, err
	}
	rows := []forkRow{
		{mode: "replay", from: 0, events: last + 1},
		{mode: "replay", from: last / 2, events: last + 1},
		{mode: "branch", from: last, events: last + 1},
	}
	for i := range rows {
		row := &rows[i]
		body := fmt.Appendf(nil, `{"mode":%q,"fromSeq":%d}`, row.mode, row.from)
		for range o.often(30) {
			began := time.Now()
			fork, err := runIDIn(r.client.do(ctx, http.MethodPost, "/v1/runs/"+runID+":fork", body))
			row.took = append(row.took, time.Since(began))
			if err != nil {
				return nil, err
			}
			if _, err := r.completed(ctx, fork); err != nil {
				return nil, err
			}
		}
		row.took.sorted()
	}
	return rows, nil
}

// pages reads pages of one very long run.
func (r *engineRig) pages(ctx context.Context, o options, events int) ([]pageRow, error) {
	runID, last, err := r.long(ctx, events)
	if err != nil {
		return nil, err
	}
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // G404: places, no secrets
	rows := []pageRow{{where: "at its start"}, {where: "at its end"}, {where: "anywhere"}}
	after := []func() int{
		func() int { return -1 },
		func() int { return last - pageSize },
		func() int { return rnd.IntN(last-pageSize+1) - 1 },
	}
	for range o.often(1500) {
		for i := range rows { // alternating, so that other load affects all
			began := time.Now()
			if _, _, err := r.client.page(ctx, runID, after[i](), 1, pageSize); err != nil {
				return nil, err
			}
			rows[i].took = append(rows[i].took, time.Since(began))
		}
	}
	for i := range rows {
		rows[i].events = last + 1
		rows[i].took.sorted()
	}
	return rows, nil
}

// wide runs one branch and a hundred equal ones, alternating.
func (r *engineRig) wide(ctx context.Context, o options) ([]wideRow, error) {
	const branches = 100
	r.reply = openaicompat.Reply{Pieces: []string{"Done."}, Wait: 200 * time.Millisecond}
	rows := []wideRow{{branch: "a wait of 200 ms"}, {branch: "a model that takes 200 ms"}}
	for i, node := range []string{delayNode, askNode} {
		row := &rows[i]
		row.branches = branches
		for _, n := range []int{1, branches} {
			if err := r.deploy(ctx, parallelNodes(fmt.Sprintf("bench-wide-%d-%d", i, n), node, n)); err != nil {
				return nil, err
			}
		}
		for range o.often(15) {
			for n, into := range map[int]*samples{1: &row.one, branches: &row.all} {
				began := time.Now()
				runID, err := r.created(ctx, fmt.Sprintf("bench-wide-%d-%d", i, n))
				if err != nil {
					return nil, err
				}
				if _, err := r.completed(ctx, runID); err != nil {
					return nil, err
				}
				*into = append(*into, time.Since(began))
			}
		}
		row.one.sorted()
		row.all.sorted()
	}
	return rows, nil
}

// waiting leaves runs at a gate and measures the host.
func (r *engineRig) waiting(ctx context.Context, o options) (waitRow, error) {
	row := waitRow{runs: 1000}
	if o.quick {
		row.runs = 50
	}
	if err := r.deploy(ctx, parallelNodes("bench-gate", gateNode, 1)); err != nil {
		return row, err
	}
	for range 20 { // fills caches that a host has only once
		if _, err := r.created(ctx, "bench-gate"); err != nil {
			return row, err
		}
	}
	var err error
	if row.before, row.idle, err = r.quiet(ctx, o); err != nil {
		return row, err
	}
	if row.alive, err = r.heapKB(ctx); err != nil {
		return row, err
	}
	for range row.runs {
		if _, err := r.created(ctx, "bench-gate"); err != nil {
			return row, err
		}
	}
	if row.after, row.busy, err = r.quiet(ctx, o); err != nil {
		return row, err
	}
	row.held, err = r.heapKB(ctx)
	return row, err
}

// heapKB is the host's heap after a collection. The kernel's count also has the garbage before the
// next collection, so it shows little about a run.
func (r *engineRig) heapKB(ctx context.Context) (float64, error) {
	b, err := pprof(ctx, r.host.ready.Metrics, "heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), "# HeapAlloc = ")
	text, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(text, 64)
	return n / 1024, err
}

// quiet lets the host become idle, and returns its process figures and its CPU in a second.
func (r *engineRig) quiet(ctx context.Context, o options) (proc, time.Duration, error) {
	if err := r.waitForGates(ctx); err != nil {
		return proc{}, 0, err
	}
	settle, watch := 5*time.Second, 10*time.Second
	if o.quick {
		settle, watch = time.Second, time.Second
	}
	time.Sleep(settle) // a collection, and write-behind
	before, err := r.host.proc()
	if err != nil {
		return before, 0, err
	}
	time.Sleep(watch)
	after, err := r.host.proc()
	return after, time.Duration(float64(after.cpu-before.cpu) / watch.Seconds()), err
}

// waitForGates waits until every run has reached its gate.
func (r *engineRig) waitForGates(ctx context.Context) error {
	for {
		b, err := r.client.do(ctx, http.MethodGet, "/v1/runs?limit=1&status=running", nil)
		if err != nil {
			return err
		}
		if !strings.Contains(string(b), `"runId"`) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}
