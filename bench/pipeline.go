package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/accept/accepttest"
	"waybill.dev/waybill/services/acceptor/kinds"
	"waybill.dev/waybill/services/redactor/redact"
)

// perRun is the number of envelopes per run, as in a long conversation.
const perRun = 100

// scrubber is the redactor's engine within this process, without its service.
type scrubber struct{ *redact.Scrubber }

// Redact redacts secrets; see accept.Redactor.
func (s scrubber) Redact(_ context.Context, _ subject.Run, in accept.Texts) (out accept.Texts, n int, err error) {
	for _, d := range in.Documents {
		clean, found, err := s.JSON(d, strictjson.Limits{MaxBytes: 16 << 20, MaxDepth: 128})
		if err != nil {
			return out, 0, err
		}
		out.Documents, n = append(out.Documents, json.RawMessage(clean)), n+found
	}
	for _, t := range in.Strings {
		clean, found := s.Text(t)
		out.Strings, n = append(out.Strings, clean), n+found
	}
	return out, n, nil
}

// rig is a pipeline over a log in memory.
type rig struct {
	kinds *kinds.Registry
	scrub scrubber
	log   *memory.Log
	pipe  *accept.Pipeline
	at    accept.Target
	docs  [][]byte
	n     int
}

func newRig() (*rig, error) {
	registry, err := kinds.New(kinds.LintWarn)
	if err != nil {
		return nil, err
	}
	if _, err := registry.Register(accepttest.Kind, accepttest.Version, []byte(accepttest.Schema)); err != nil {
		return nil, err
	}
	r := &rig{kinds: registry, scrub: scrubber{redact.Compile(thousand()[:10]).With(redact.DefaultShapes())}}
	for i := range perRun {
		r.docs = append(r.docs, accepttest.Envelope(fmt.Sprintf("corr-%04d", i)))
	}
	return r, nil
}

// begin puts a new run into a new log, so that neither grows with the load.
func (r *rig) begin(ctx context.Context) error {
	r.log = memory.New()
	policy := accept.Policy{MaxInlineBytes: accept.DefaultMaxInlineBytes}
	r.pipe = accept.New(r.kinds, r.scrub, accept.NewLogLedger(r.log, time.Now), time.Now, policy)
	head, err := beginRun(ctx, r.log, benchRun(fmt.Sprint("run_", r.n/perRun)))
	r.at = accept.Target{Run: benchRun(fmt.Sprint("run_", r.n/perRun)), Head: head}
	return err
}

// one accepts the run's next envelope.
func (r *rig) one(ctx context.Context) error {
	res, err := r.pipe.Run(ctx, accept.Request{Target: r.at, Document: r.docs[r.n%perRun], NodeID: "ask"})
	if err != nil {
		return err
	}
	if res.Refusal != nil {
		return fmt.Errorf("the envelope was refused: %s", res.Outcome)
	}
	r.at.Head = res.Head
	r.n++
	return nil
}

// accepts are the costs of many single accepts.
type accepts struct {
	cpu, wall samples
	// floor is the CPU of the validator alone on the same payload.
	floor samples
	// process is the CPU of all threads, including garbage collection.
	process        time.Duration
	mallocs, bytes uint64
}

// pipelineCost measures single accepts, alternating with the validator alone, so that other load
// affects both.
func pipelineCost(ctx context.Context, d time.Duration) (accepts, error) {
	r, err := newRig()
	if err != nil {
		return accepts{}, err
	}
	alone, err := schema.Compile(accepttest.Kind, []byte(accepttest.Schema))
	if err != nil {
		return accepts{}, err
	}
	var a accepts
	begin := time.Now().Add(d / 5)
	for end := begin.Add(d); time.Now().Before(end) || len(a.cpu) == 0; {
		warm := time.Now().Before(begin)
		if err := r.batch(ctx, &a); err != nil {
			return a, err
		}
		if err := floor(alone, &a); err != nil {
			return a, err
		}
		if warm {
			a = accepts{}
		}
	}
	a.cpu.sorted()
	a.wall.sorted()
	a.floor.sorted()
	return a, nil
}

// batch measures a run's envelopes one by one.
func (r *rig) batch(ctx context.Context, a *accepts) (err error) {
	if err := r.begin(ctx); err != nil {
		return err
	}
	cpu, wall := make(samples, 0, perRun), make(samples, 0, perRun)
	c := costOf(func() {
		all := processCPU()
		for range perRun {
			began, spent := time.Now(), threadCPU()
			if err = r.one(ctx); err != nil {
				return
			}
			cpu, wall = append(cpu, threadCPU()-spent), append(wall, time.Since(began))
		}
		a.process += processCPU() - all
	})
	a.cpu, a.wall = append(a.cpu, cpu...), append(a.wall, wall...)
	a.mallocs, a.bytes = a.mallocs+c.mallocs, a.bytes+c.bytes
	return err
}

// floor measures the validator as often.
func floor(s *schema.Schema, a *accepts) error {
	payload := []byte(accepttest.Payload())
	var wrong []schema.Violation
	costOf(func() {
		for range perRun {
			spent := threadCPU()
			wrong = append(wrong, s.Validate(payload)...)
			a.floor = append(a.floor, threadCPU()-spent)
		}
	})
	if len(wrong) > 0 {
		return fmt.Errorf("the payload is invalid: %v", wrong)
	}
	return nil
}

func (a accepts) figures() []figure {
	p50, p99, floor := a.cpu.percentile(50), a.cpu.percentile(99), a.floor.percentile(50)
	const target = 200 * time.Microsecond
	n := float64(len(a.cpu))
	validator := "the validator alone: " + short(floor)
	return []figure{
		{
			what:     "CPU of one accept of 2 KB, p50",
			basis:    absolute,
			measured: short(p50),
			target:   "≤ 200 µs",
			met:      p50 <= target,
			ceiling:  validator,
		},
		{
			what:     "… p99",
			basis:    absolute,
			measured: short(p99),
			ceiling:  "the validator alone: " + short(a.floor.percentile(99)),
		},
		{
			what:     "… p50 relative to the validator's",
			basis:    ratio,
			measured: fmt.Sprintf("%.2f×", float64(p50)/float64(floor)),
			ceiling:  "1×",
		},
		{
			what:     "… wall time, p50 and p99",
			basis:    absolute,
			measured: short(a.wall.percentile(50)) + ", " + short(a.wall.percentile(99)),
		},
		{
			what:     "… CPU of the process with garbage collection, mean",
			basis:    absolute,
			measured: short(a.process / time.Duration(len(a.cpu))),
		},
		{
			what:     "allocations per accept",
			basis:    count,
			measured: fmt.Sprintf("%.0f, of %.0f KB", float64(a.mallocs)/n, float64(a.bytes)/n/1e3),
			target:   "≤ 1,200",
			met:      float64(a.mallocs) <= 1200*n,
		},
	}
}

func benchRun(id string) subject.Run {
	return subject.Run{Tenant: "default", WorkflowID: "bench", RunID: id}
}

// beginRun appends the frames before the first envelope.
func beginRun(ctx context.Context, log accept.Log, run subject.Run) (frame.Head, error) {
	start := frame.NewStart(run, []byte(`{"runId":"`+run.RunID+`","workflowId":"bench","owner":{"tenant":"default"}}`))
	pos, err := log.Append(ctx, start, 0)
	if err != nil {
		return frame.Head{}, err
	}
	start.Pos = pos
	first := wire.Draft{Type: wire.EventRunStarted}.Place(run.RunID, start.Head().Next, time.Now())
	begun := frame.New(run, subject.Step, start.Head(), []wire.Event{first})
	if begun.Pos, err = log.Append(ctx, begun, pos); err != nil {
		return frame.Head{}, err
	}
	return begun.Head(), nil
}
