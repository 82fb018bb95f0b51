package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// callersMemory is the limit of the host's control group, callersTarget that of its memory.
	callersMemory = 512 << 20
	callersTarget = 400 // MB
	// errorTarget is the part of the victim's requests that may fail while all attacks run.
	errorTarget = 0.001
	// The tenant of the attackers, and the one whose requests are measured.
	hostileKey, victimKey = "hostile-all-key-01", "victim-all-key-001"
	// victims are the clients of the victim, each with a request every victimPause.
	victims     = 4
	victimPause = 20 * time.Millisecond
)

// attack is a load by hostile callers.
type attack struct {
	name string
	// p99 is the target of the victim's requests; bounded: the target of the memory applies.
	p99     time.Duration
	bounded bool
	// begin starts the attackers, which end with ctx.
	begin func(ctx context.Context, on *attacked, all *sync.WaitGroup)
}

// attacked is a host with what the attacks need.
type attacked struct {
	*host
	hostile, victim *client
	// waiting and ended are runs with an input of 900 KB, long one with a log of 8 MB.
	waiting, ended, long string
	// inbox receives the victim's webhook.
	inbox *inbox
}

// callersRow is what a victim saw of an attack.
type callersRow struct {
	attack
	took   samples
	kinds  map[string]samples // by method and path
	failed int
	// failures counts them by request and answer, refused what the host refused by reason.
	failures map[string]int
	refused  string
	// delivered are the delays of webhooks.
	delivered samples
	peakMB    float64
	killed    int
}

// hostileCallers measures each attack alone, then all of them together.
func hostileCallers(ctx context.Context, r *report) error {
	wanted := func(a attack) bool {
		return r.options.attacks == "" || slices.Contains(strings.Split(r.options.attacks, ","), a.name)
	}
	var all []attack
	for _, a := range attacks() {
		if wanted(a) {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("-attacks %q: want some of %q", r.options.attacks, attackNames())
	}
	for _, a := range all {
		if r.options.seconds == 0 {
			break // only together
		}
		row, err := measureCallers(ctx, r.options, a, max(r.options.seconds, 10*time.Second))
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		r.callers = append(r.callers, row)
	}
	if r.options.together == 0 {
		return nil
	}
	row, err := measureCallers(ctx, r.options, together(all), r.options.together)
	r.together = &row
	return err
}

// together is all attacks at once.
func together(all []attack) attack {
	return attack{name: "together", begin: func(ctx context.Context, on *attacked, wg *sync.WaitGroup) {
		for _, a := range all {
			a.begin(ctx, on, wg)
		}
	}}
}

// measureCallers starts a host, attacks it for a while, and measures the victim.
func measureCallers(ctx context.Context, o options, a attack, d time.Duration) (row callersRow, err error) {
	row.attack = a
	c := newCage(fmt.Sprintf("waybill-callers-%d", os.Getpid()))
	defer func() { err = errors.Join(err, c.remove()) }()
	on, err := startAttacked(ctx, o, c)
	if err != nil {
		return row, err
	}
	defer on.stop()
	attacking, end := context.WithCancel(ctx)
	defer end()
	var wg sync.WaitGroup
	a.begin(attacking, on, &wg)
	measuring, stop := context.WithTimeout(ctx, d)
	defer stop()
	sampled := make(chan float64, 1)
	go func() { sampled <- on.peak(measuring) }()
	profiled := make(chan error, 1)
	go func() {
		if o.cpu == "" {
			profiled <- nil
			return
		}
		profiled <- fetch(ctx, on.ready.Metrics, o.cpu, d)
	}()
	row.visit(measuring, on)
	if err := <-profiled; err != nil {
		return row, err
	}
	row.peakMB = <-sampled
	if p, errProc := on.proc(); errProc != nil || p.rssMB == 0 { // it has ended
		text := on.out.String()
		return row, fmt.Errorf("the host has ended: %s", text[max(0, len(text)-4000):])
	}
	row.refused, err = on.refusals(ctx)
	if o.heap != "" {
		err = errors.Join(err, on.saveHeap(ctx, o.heap))
	}
	end()
	wg.Wait()
	row.delivered = on.inbox.delays()
	row.took.sorted()
	killed, errKilled := c.killed()
	row.killed = killed
	return row, errors.Join(err, errKilled)
}

// startAttacked starts a host in a cage, and creates what the attacks read.
func startAttacked(ctx context.Context, o options, c *cage) (*attacked, error) {
	bin := filepath.Join(o.dir, "caged")
	if err := c.enclose(bin, o.bin, callersMemory); err != nil {
		return nil, err
	}
	h, err := startHostIn(ctx, []string{"OPENWOP_WEBHOOK_ALLOW_PRIVATE=true"}, bin, o.dir, "--test-seams", "--metrics-addr", "127.0.0.1:0",
		"--api-key", victimKey+"=victim:*", "--api-key", hostileKey+"=hostile:*")
	if err != nil {
		return nil, err
	}
	on := &attacked{host: h, hostile: newClient(h.ready.HTTP, 1000), victim: newClient(h.ready.HTTP, 100)}
	on.hostile.key, on.victim.key = hostileKey, victimKey
	if err := on.prepare(ctx); err != nil {
		on.stop()
		return nil, fmt.Errorf("%w\n%s", err, h.out.String())
	}
	return on, nil
}

func (a *attacked) stop() {
	if a.inbox != nil {
		a.inbox.close()
	}
	a.host.stop()
}

const (
	gateFlow = "callers-gate"
	copyFlow = "callers-copy"
	// copies is how often the log of copyFlow repeats its input.
	copies = 10
)

// flow is a workflow with the variable text.
func flow(id string, nodes, edges []string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"name":"c","version":"1","nodes":[%s],"edges":[%s],"triggers":[],`+
		`"variables":[{"name":"text","type":"string","defaultValue":""}],"metadata":{},"settings":{}}`, id, strings.Join(nodes, ","), strings.Join(edges, ","))
}

func flowNode(id, kind, config, inputs string) string {
	return fmt.Sprintf(`{"id":%q,"typeId":%q,"name":"n","position":{"x":0,"y":0},"config":%s,"inputs":%s}`, id, kind, config, inputs)
}

// prepare registers workflows, and creates the runs that are read.
func (a *attacked) prepare(ctx context.Context) (err error) {
	var nodes, edges []string
	for i := range copies {
		nodes = append(nodes, flowNode(fmt.Sprintf("n%d", i), "core.identity", "{}", `{"text":{"type":"variable","variableName":"text"}}`))
		if i > 0 {
			edges = append(edges, fmt.Sprintf(`{"id":"e%d","sourceNodeId":"n%d","targetNodeId":"n%d"}`, i, i-1, i))
		}
	}
	_, noop := chain(1)
	gate := flow(gateFlow, []string{flowNode("ask", "core.approvalGate", `{"title":"Go on?","actions":["accept"]}`, "{}")}, nil)
	for _, c := range []*client{a.hostile, a.victim} {
		for _, doc := range [][]byte{noop, gate, flow(copyFlow, nodes, edges)} {
			if _, err := c.do(ctx, http.MethodPost, "/v1/workflows", doc); err != nil {
				return err
			}
		}
	}
	id, _ := chain(1)
	for into, of := range map[*string]string{&a.waiting: gateFlow, &a.ended: id, &a.long: copyFlow} {
		if *into, err = runIDIn(a.hostile.do(ctx, http.MethodPost, "/v1/runs", largeRun(of, 800_000))); err != nil {
			return err
		}
	}
	if err := errors.Join(a.reach(ctx, a.long, "completed"), a.reach(ctx, a.ended, "completed"), a.reach(ctx, a.waiting, "waiting-approval")); err != nil {
		return err
	}
	a.inbox, err = newInbox(ctx)
	if err != nil {
		return err
	}
	_, err = a.victim.do(ctx, http.MethodPost, "/v1/webhooks", fmt.Appendf(nil, `{"url":%q,"events":["run.completed"]}`, a.inbox.url))
	return err
}

// reach waits until a run has a status.
func (a *attacked) reach(ctx context.Context, runID, status string) error {
	for {
		b, err := a.hostile.do(ctx, http.MethodGet, "/v1/runs/"+runID, nil)
		if err != nil {
			return err
		}
		var run struct{ Status string }
		if err := json.Unmarshal(b, &run); err != nil {
			return err
		}
		switch run.Status {
		case status:
			return nil
		case "failed", "cancelled":
			return fmt.Errorf("run %s is %s: %.500s", runID, run.Status, b)
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// largeRun is a request for a run with a text as input.
func largeRun(workflow string, size int) []byte {
	return fmt.Appendf(nil, `{"workflowId":%q,"inputs":{"text":%q}}`, workflow, strings.Repeat("some text, ", size/11))
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// visit makes the victim's requests until ctx ends: it creates small runs, reads and lists them.
func (row *callersRow) visit(ctx context.Context, on *attacked) {
	var (
		mu sync.Mutex
		wg sync.WaitGroup
	)
	flowID, _ := chain(1)
	body := []byte(`{"workflowId":"` + flowID + `"}`)
	row.kinds, row.failures = map[string]samples{}, map[string]int{}
	count := func(kind string, took time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		row.took = append(row.took, took)
		row.kinds[kind] = append(row.kinds[kind], took)
		if err != nil {
			row.failed++
			row.failures[err.Error()[:min(120, len(err.Error()))]]++
		}
	}
	for range victims {
		wg.Go(func() {
			runID := ""
			for i := 0; ctx.Err() == nil; i++ {
				kind, method, path, content := "list", http.MethodGet, "/v1/runs?limit=10", []byte(nil)
				switch {
				case i%3 == 0:
					kind, method, path, content = "create", http.MethodPost, "/v1/runs", body
				case i%3 == 1 && runID != "":
					kind, path = "read", "/v1/runs/"+runID
				}
				began := time.Now()
				b, err := on.victim.once(context.WithoutCancel(ctx), method, path, content)
				if method == http.MethodPost && err == nil {
					runID, err = runIDIn(b, nil)
					on.inbox.expect(runID, began)
				}
				count(kind, time.Since(began), err)
				if sleep(ctx, victimPause) != nil {
					return
				}
			}
		})
	}
	wg.Wait()
}

// peak returns the host's largest resident memory in MB until ctx ends.
func (a *attacked) peak(ctx context.Context) (mb float64) {
	for {
		if p, err := a.proc(); err == nil {
			mb = max(mb, p.rssMB)
		}
		if sleep(ctx, memoryEvery) != nil {
			return mb
		}
	}
}

// refusals lists the host's own counts of rejected requests, of all callers.
func (a *attacked) refusals(ctx context.Context) (string, error) {
	text, err := operator(ctx, a.ready.Metrics, "/metrics")
	if err != nil {
		return "", err
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		reason, ok := strings.CutPrefix(line, `waybill_gateway_refused_total{reason="`)
		reason, number, _ := strings.Cut(reason, `"} `)
		if number = strings.TrimSpace(number); ok && number != "0" {
			out = append(out, reason+" "+number)
		}
	}
	return strings.Join(out, ", "), nil
}

// saveHeap writes a profile of the host's heap.
func (a *attacked) saveHeap(ctx context.Context, file string) error {
	b, err := pprof(ctx, a.ready.Metrics, "heap")
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

func (row callersRow) figures() []figure {
	p99, part := row.took.percentile(99), float64(row.failed)/float64(max(1, len(row.took)))
	out := []figure{{
		row.name + ": another tenant's requests, p99", absolute, short(p99), "", row.p99 > 0 && p99 <= row.p99,
		fmt.Sprintf("p50 %s, most %s; p99 %s", short(row.took.percentile(50)), short(row.took.percentile(100)), row.byKind()),
	}, {
		"… that failed", count, fmt.Sprintf("%d of %d (%.2f %%)", row.failed, len(row.took), 100*part),
		"< 0.1 %", part < errorTarget, row.reasons(),
	}, {
		"… its webhook, from the request for a run to the receiver, p99", absolute, short(row.delivered.percentile(99)), "≤ 1 s",
		len(row.delivered) > 0 && row.delivered.percentile(99) <= time.Second, fmt.Sprintf("%d arrived, most %s", len(row.delivered), short(row.delivered.percentile(100))),
	}, {
		"… most memory of the host", absolute, fmt.Sprintf("%.0f MB", row.peakMB), fmt.Sprintf("≤ %d MB", callersTarget), row.peakMB <= callersTarget, "",
	}, {
		fmt.Sprintf("… kills in a control group of %d MB", callersMemory>>20), count, fmt.Sprint(row.killed), "0", row.killed == 0, "",
	}}
	if row.p99 > 0 {
		out[0].target = "≤ " + short(row.p99)
	}
	if !row.bounded {
		out[3].target = ""
	}
	return out
}

// reasons lists the answers of failed requests, and what the host refused to anyone.
func (row callersRow) reasons() string {
	var out []string
	for _, text := range slices.Sorted(maps.Keys(row.failures)) {
		out = append(out, fmt.Sprintf("%d × %s", row.failures[text], text))
	}
	return strings.Join(append(out, "refused to all callers: "+cmp.Or(row.refused, "none")), "; ")
}

// byKind lists the latencies of each kind of request.
func (row callersRow) byKind() string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(row.kinds)) {
		out = append(out, kind+" "+short(row.kinds[kind].sorted().percentile(99)))
	}
	return strings.Join(out, ", ")
}

// callersTable writes all rows.
func (r *report) callersTable(p func(string, ...any)) {
	p("\n## Hostile callers\n\nOne tenant attacks; another one creates, reads and lists small runs from %d clients. The host has %d MB, and shares the\nmachine with the attackers. Load average: %s.\n\n", victims, callersMemory>>20, busy())
	var all []figure
	for _, row := range r.callers {
		all = append(all, row.figures()...)
	}
	if r.together != nil {
		r.together.name = fmt.Sprintf("all of them together for %s", r.options.together)
		all = append(all, r.together.figures()...)
	}
	figureTable(p, all)
}

// missedCallers returns the targets that were missed.
func (r *report) missedCallers() error {
	rows := r.callers
	if r.together != nil {
		rows = append(slices.Clip(rows), *r.together)
	}
	var missed []string
	for _, row := range rows {
		for _, f := range row.figures() {
			if f.target != "" && !f.met {
				missed = append(missed, fmt.Sprintf("%s: %s: %s, want %s", row.name, f.what, f.measured, f.target))
			}
		}
	}
	if len(missed) == 0 {
		return nil
	}
	return fmt.Errorf("%d targets missed:\n%s", len(missed), strings.Join(missed, "\n"))
}
