package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/bench/scalesim"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/acceptor/accept/accepttest"
	"waybill.dev/waybill/test/double/openaicompat"
)

// measureScale measures the cost of runs and the limits of an installation, for the simulation of
// many installations.
func measureScale(ctx context.Context, o options) ([]byte, error) {
	m := scalesim.Measured{Machine: hardware() + "; load average before: " + busy()}
	var err error
	if m.HeapPerSubject, err = heapPerSubject(ctx, o.dir); err != nil {
		return nil, fmt.Errorf("heap of a subject: %w", err)
	}
	catalogue, err := strictCatalogue(o.dir)
	if err != nil {
		return nil, err
	}
	double := newModelDouble()
	defer double.Close()
	h, err := startSpread(ctx, o, 1, []string{"WAYBILL_PROVIDER_DOUBLE_KEY=" + doubleKey},
		"--provider", "double="+double.URL(), "--default-model", "double/"+openaicompat.DefaultModel, "--models", catalogue)
	if err != nil {
		return nil, err
	}
	defer h.stop()
	whole, streamed := answers{pieces: 1}, answers{wait: 200 * time.Millisecond, pieces: 40, interval: 25 * time.Millisecond}
	for _, s := range []shape{
		{scalesim.Shape{Name: "one no-op node"}, "bench-1", whole, 10_000},
		{scalesim.Shape{Name: "one question, answer in one piece", Calls: 1}, "bench-ask-1", whole, 2000},
		{scalesim.Shape{Name: "one question, answer in 40 pieces", Calls: 1}, "bench-ask-1", streamed, 1000},
		{scalesim.Shape{Name: "25 questions, answers in one piece", Calls: 25}, "bench-ask-25", whole, 200},
		{scalesim.Shape{Name: "25 questions, answers in 40 pieces", Calls: 25}, "bench-ask-25", streamed, 60},
	} {
		double.answersLike(s.model)
		if err := s.measure(ctx, h, o.often(10)); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		m.Shapes = append(m.Shapes, s.Shape)
	}
	for range o.tries() {
		perSec, err := ingest(ctx, o, h)
		if err != nil {
			return nil, fmt.Errorf("ingest: %w", err)
		}
		m.IngestPerSec = max(m.IngestPerSec, perSec)
	}
	doc, err := json.MarshalIndent(m, "", "  ")
	return append(doc, '\n'), err
}

// shape is a kind of run with the model's answers, and the number of runs to measure.
type shape struct {
	scalesim.Shape

	workflow string
	model    answers
	runs     int
}

func (s *shape) definition() []byte {
	if s.Calls == 0 {
		_, doc := chain(1)
		return doc
	}
	return questionsWorkflow(s.workflow, s.Calls)
}

// questionsWorkflow is a workflow of n consecutive nodes, each of which requests a value of the schema.
func questionsWorkflow(id string, n int) []byte {
	nodes, edges := make([]string, n), make([]string, 0, n)
	for i := range n {
		nodes[i] = fmt.Sprintf(`{"id":"ask%02d","typeId":"core.ai.structuredOutput","name":"ask","position":{"x":0,"y":0},`+
			`"config":{"prompt":%q,"maxTokens":2000,"outputSchema":%s},"inputs":{}}`, i, question("call-000000000"), accepttest.Schema)
		if i > 0 {
			edges = append(edges, fmt.Sprintf(`{"id":"e%02d","sourceNodeId":"ask%02d","targetNodeId":"ask%02d"}`, i, i-1, i))
		}
	}
	return fmt.Appendf(nil, `{"id":%q,"name":"bench","version":"1","nodes":[%s],"edges":[%s],"triggers":[],"variables":[],"metadata":{},"settings":{}}`,
		id, strings.Join(nodes, ","), strings.Join(edges, ","))
}

// measure runs the kind, after some warm-up runs.
func (s *shape) measure(ctx context.Context, h *spreadHost, share int) error {
	if _, err := h.client.do(ctx, http.MethodPost, "/v1/workflows", s.definition()); err != nil {
		return err
	}
	n := s.runs * share / 10
	var before, after spent
	for _, part := range []struct {
		runs int
		into *spent
	}{{n / 10, &before}, {n, &after}} {
		ids, err := h.create(ctx, s.workflow, part.runs)
		if err != nil {
			return err
		}
		if _, err := h.completed(ctx, ids); err != nil {
			return err
		}
		if *part.into, err = h.spent(ctx); err != nil {
			return err
		}
	}
	each := func(before, after float64) float64 { return math.Round((after-before)/float64(n)*1000) / 1000 }
	s.Frames, s.Bytes = each(before.frames, after.frames), math.Round(each(before.bytes, after.bytes))
	s.Subjects = each(before.subjects, after.subjects)
	s.CPU = map[string]float64{}
	for _, name := range scalesim.Services {
		s.CPU[name] = each(before.cpu[name], after.cpu[name])
	}
	return nil
}

// spent is the host's total log size, and its CPU in milliseconds.
type spent struct {
	frames, subjects, bytes float64
	cpu                     map[string]float64
}

func (h *spreadHost) spent(ctx context.Context) (spent, error) {
	nc, err := nats.Connect(h.ready.NATS)
	if err != nil {
		return spent{}, err
	}
	defer nc.Close()
	api, err := js.New(nc)
	if err != nil {
		return spent{}, err
	}
	stream, err := api.Stream(ctx, subject.Stream)
	if err != nil {
		return spent{}, err
	}
	state := stream.CachedInfo().State
	s := spent{frames: float64(state.Msgs), subjects: float64(state.NumSubjects), bytes: float64(state.Bytes), cpu: map[string]float64{}}
	pids, err := h.pids()
	if err != nil {
		return s, err
	}
	for name, pid := range pids {
		p, err := procOf(pid)
		if err != nil {
			return s, err
		}
		s.cpu[strings.TrimRight(name, "0123456789")] += float64(p.cpu) / float64(time.Millisecond)
	}
	return s, nil
}

// ingest measures how fast a new event log reads the whole log.
func ingest(ctx context.Context, o options, h *spreadHost) (float64, error) {
	held, err := h.spent(ctx)
	if err != nil {
		return 0, err
	}
	e, err := launch(ctx, nil, o.bin, o.dir, func(data string) []string {
		return []string{"serve", "eventlog", "--grpc-addr", "127.0.0.1:0", "--data-dir", data, "--nats", h.ready.NATS}
	})
	if err != nil {
		return 0, err
	}
	defer e.stop()
	return math.Round(held.frames / e.took.Seconds()), nil
}

// heapPerSubject measures the memory of a stream's subject index: the heap growth from one filled
// stream to a fuller one.
func heapPerSubject(ctx context.Context, dir string) (float64, error) {
	log, err := openLog(ctx, dir, false)
	if err != nil {
		return 0, err
	}
	defer log.stop()
	const writers, few, many = 64, 50_000, 250_000
	fill := func(from, to int) error {
		group, ctx := errgroup.WithContext(ctx)
		for w := range writers {
			group.Go(func() error {
				for i := from + w; i < to; i += writers {
					id := sha256.Sum256(fmt.Append(nil, i)) // the host's format: same length, time first
					if err := twoFrames(ctx, log.Log, fmt.Sprintf("run_%010d%x", i, id[:8])); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return group.Wait()
	}
	if err := fill(0, few); err != nil {
		return 0, err
	}
	before, err := settledHeap(ctx)
	if err != nil {
		return 0, err
	}
	if err := fill(few, many); err != nil {
		return 0, err
	}
	after, err := settledHeap(ctx)
	return math.Round((after - before) / (2 * (many - few))), err // a run has two subjects
}

// settles is a bit more than the two minutes for which a server caches writes and their subjects in
// addition to its index.
const settles = 150 * time.Second

// settledHeap returns the heap after that.
func settledHeap(ctx context.Context) (float64, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(settles):
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), nil
}
