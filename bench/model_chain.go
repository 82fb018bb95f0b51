package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept/accepttest"
	"waybill.dev/waybill/test/double/openaicompat"
)

// links is the number of consecutive calls of a chain, like an agent's.
const links = 25

const chainWorkflow = "bench-model-chain"

// modelChain is a workflow of links nodes, each of which requests a value of the schema.
func modelChain() []byte {
	nodes, edges := make([]string, links), make([]string, 0, links-1)
	for i := range links {
		nodes[i] = fmt.Sprintf(`{"id":"ask%02d","typeId":"core.ai.structuredOutput","name":"ask","position":{"x":0,"y":0},`+
			`"config":{"prompt":"{{question}}","maxTokens":2000,"outputSchema":%s},"inputs":{}}`, i, accepttest.Schema)
		if i > 0 {
			edges = append(edges, fmt.Sprintf(`{"id":"e%02d","sourceNodeId":"ask%02d","targetNodeId":"ask%02d"}`, i, i-1, i))
		}
	}
	return fmt.Appendf(nil, `{"id":%q,"name":"bench","version":"1","nodes":[%s],"edges":[%s],"triggers":[],`+
		`"variables":[{"name":"question","type":"string","required":true}],"metadata":{},"settings":{}}`,
		chainWorkflow, strings.Join(nodes, ","), strings.Join(edges, ","))
}

// gaps are the times between the last byte of one answer and the arrival of the next request: all
// work around a call, without the start and end of the run.
func gaps(seen []openaicompat.Watched) samples {
	var out samples
	for i := 1; i < len(seen); i++ {
		out = append(out, seen[i].Arrived.Sub(seen[i-1].Writes[len(seen[i-1].Writes)-1]))
	}
	return out
}

// chainCaller makes the calls of a chain.
type chainCaller func(ctx context.Context, id string) error

// chained runs the workflow on the host.
func (c *client) chained(ctx context.Context, id string) error {
	runID, err := c.create(ctx, chainWorkflow, question(id))
	if err != nil {
		return err
	}
	completed := false
	err = c.follow(ctx, runID, "updates", func(event string, _ []byte) bool {
		completed = completed || event == string(wire.EventRunCompleted)
		return true
	})
	if err == nil && !completed {
		err = fmt.Errorf("run %s did not complete", runID)
	}
	return err
}

// inSequence makes the same calls without a host.
func inSequence(ask asker) chainCaller {
	return func(ctx context.Context, id string) error {
		for range links {
			if _, err := ask(ctx, id); err != nil {
				return err
			}
		}
		return nil
	}
}

// chainFigures are the figures of chains.
type chainFigures struct {
	made, succeeded int // calls
	gaps, late      samples
	failure         error
}

func (f *chainFigures) add(g chainFigures) {
	f.made, f.succeeded = f.made+g.made, f.succeeded+g.succeeded
	f.gaps, f.late = append(f.gaps, g.gaps...).sorted(), append(f.late, g.late...).sorted()
	if g.failure != nil {
		f.failure = g.failure
	}
}

func (f chainFigures) success() float64 { return 100 * float64(f.succeeded) / float64(max(f.made, 1)) }

// chains runs n chains, at rate calls per second in total.
func (c *modelCaller) chains(ctx context.Context, ask chainCaller, rate, n int, how answers) (chainFigures, error) {
	c.double.answersLike(how)
	allowed := links * (c.patience + how.wait)
	out := chainFigures{made: n * links}
	var mu sync.Mutex
	_, late, err := drive(ctx, time.Second*links/time.Duration(rate), n, func(time.Time) error {
		ctx, cancel := context.WithTimeoutCause(ctx, allowed, fmt.Errorf("chain not completed within %s", allowed))
		defer cancel()
		seen, err := c.chain(ctx, ask)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			out.failure = err
			return nil
		}
		out.succeeded += links
		out.gaps = append(out.gaps, gaps(seen)...)
		return nil
	})
	out.late = late.sorted()
	out.gaps.sorted()
	return out, err
}

// chain makes the calls of one chain and returns the double's records.
func (c *modelCaller) chain(ctx context.Context, ask chainCaller) ([]openaicompat.Watched, error) {
	id, seen := c.double.expect(c.calls.Add(1))
	if err := ask(ctx, id); err != nil {
		c.double.waiting.Delete(id)
		return nil, err
	}
	return seen(ctx, links)
}

// chainRow compares a load of chains on a host with the same load on the double alone.
type chainRow struct {
	durability               string
	rate                     int
	how                      answers
	host, base               chainFigures
	hostCPU, ownCPU, baseCPU time.Duration
	proc                     proc
}

// chainRow measures both sides, alternating, after a warm-up turn.
func (r *modelRig) chainRow(ctx context.Context, o options, row chainRow) (chainRow, error) {
	n := max(1, int(o.modelSeconds().Seconds()*float64(row.rate)/rounds/links))
	warm, err := r.chains(ctx, r.client.chained, row.rate, max(1, n/3), row.how)
	if err != nil || warm.success() < overrun {
		row.host = warm
		return row, err
	}
	for range rounds {
		if err := r.chainTurn(ctx, &row, n); err != nil {
			return row, err
		}
		if row.host.success() < overrun {
			break
		}
	}
	return row, nil
}

func (r *modelRig) chainTurn(ctx context.Context, row *chainRow, n int) error {
	own := processCPU()
	base, err := r.chains(ctx, inSequence(r.direct), row.rate, n, row.how)
	if err != nil {
		return err
	}
	row.baseCPU += processCPU() - own
	before, err := r.host.proc()
	if err != nil {
		return err
	}
	own = processCPU()
	host, err := r.chains(ctx, r.client.chained, row.rate, n, row.how)
	if err != nil {
		return err
	}
	row.ownCPU += processCPU() - own
	row.proc, err = r.host.proc()
	row.hostCPU += row.proc.cpu - before.cpu
	row.base.add(base)
	row.host.add(host)
	return err
}
