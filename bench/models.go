package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"waybill.dev/waybill/test/double/openaicompat"
)

// modelRates are how many calls come in a second: some that leave room, and as many
// as the target is about. streamRate is how many of those whose pieces are recorded
// one by one.
var modelRates = []int{100, 500}

const streamRate = 10

// modelFigures are those about calls of models.
type modelFigures struct {
	load   string // what else the machine did
	chains []chainRow
	rows   []modelRow
	stream []modelRow
	most   []mostRow
}

// modelRow is a load on a host, beside the same load on the double alone.
type modelRow struct {
	durability string
	how        answers
	rate       int
	host, base callFigures
	// hostCPU and ownCPU are of the host's process, and of this one
	// (load client and double) meanwhile, for all calls; baseCPU is of this one without a host.
	hostCPU, ownCPU, baseCPU time.Duration
	proc                     proc
}

// mostRow is the highest rate that a host held.
type mostRow struct {
	durability string
	how        answers
	rate       int
	at         callFigures
	// broke is the rate that it did not hold, with what was seen of it.
	broke  int
	beyond callFigures
}

// models measures the section: each durability on a host of its own.
func models(ctx context.Context, r *report) error {
	r.models.load = busy()
	for _, durability := range []string{"sync", "process"} {
		if err := r.models.measure(ctx, r.options, durability); err != nil {
			return fmt.Errorf("models, durability %s: %w", durability, err)
		}
	}
	return nil
}

// modelRig is a double, a host that asks it, and the way around the host.
type modelRig struct {
	modelCaller
	host          *host
	client        *client
	direct        asker
	closeProvider func()
}

// thinks is how long the double does where it takes its time.
const thinks = 20 * time.Millisecond

func (m *modelFigures) measure(ctx context.Context, o options, durability string) error {
	rates := modelRates
	if o.quick {
		rates = rates[:1]
	}
	for _, rate := range rates {
		row := chainRow{durability: durability, rate: o.pace(rate), how: answers{wait: thinks, pieces: 8}}
		err := withModelRig(ctx, o, durability, func(rig *modelRig) (err error) {
			row, err = rig.chainRow(ctx, o, row)
			return err
		})
		if err != nil {
			return err
		}
		m.chains = append(m.chains, row)
	}
	for _, rate := range rates {
		for _, wait := range []time.Duration{0, thinks} {
			row := modelRow{durability: durability, rate: o.pace(rate), how: answers{wait: wait, pieces: 8}}
			err := withModelRig(ctx, o, durability, func(rig *modelRig) (err error) {
				row, err = rig.row(ctx, o, row, rig.client.hosted(false))
				return err
			})
			if err != nil {
				return err
			}
			m.rows = append(m.rows, row)
		}
	}
	row := modelRow{durability: durability, rate: o.pace(streamRate), how: answers{wait: thinks, pieces: 40, interval: 10 * time.Millisecond}}
	return withModelRig(ctx, o, durability, func(rig *modelRig) error {
		row, err := rig.row(ctx, o, row, rig.client.hosted(true))
		if err != nil {
			return err
		}
		m.stream = append(m.stream, row)
		most, err := rig.most(ctx, o, durability)
		m.most = append(m.most, most)
		return err
	})
}

// ownGC is the GOGC of this process in this section. Load client and double share the cores with
// the host: at the usual 100, collections were half of the baseline's p99, and a sixth of what the
// two took of the processor.
const ownGC = 400

// withModelRig has a host of its own for what is measured.
func withModelRig(ctx context.Context, o options, durability string, do func(*modelRig) error) error {
	defer debug.SetGCPercent(debug.SetGCPercent(ownGC))
	rig, err := newModelRig(ctx, o, durability)
	if err != nil {
		return err
	}
	defer rig.stop()
	return do(rig)
}

// pace is a rate that a short try holds on any machine.
func (o options) pace(rate int) int {
	if o.quick {
		return min(rate, 20)
	}
	return rate
}

// patience is how much longer than the double a call may take, counted from the
// instant it was due, and still succeed. A short try is no measurement: it succeeds
// also on a machine that others use.
func (o options) patience() time.Duration {
	if o.quick {
		return 30 * time.Second
	}
	return time.Second
}

// modelSeconds is how long calls are measured in a row.
func (o options) modelSeconds() time.Duration {
	if o.quick {
		return o.seconds
	}
	return max(o.seconds, 21*time.Second)
}

func newModelRig(ctx context.Context, o options, durability string) (*modelRig, error) {
	rig := &modelRig{modelCaller: modelCaller{patience: o.patience()}}
	rig.double = newModelDouble()
	var err error
	rig.host, err = startHostIn(ctx, []string{"WAYBILL_PROVIDER_DOUBLE_KEY=" + doubleKey}, o.bin, o.dir, "--durability", durability,
		"--provider", "double="+rig.double.URL(), "--default-model", "double/"+openaicompat.DefaultModel, "--metrics-addr", "127.0.0.1:0")
	if err != nil {
		rig.double.Close()
		return nil, err
	}
	rig.client = newClient(rig.host.ready.HTTP, 1024)
	if err := rig.prepare(ctx); err != nil {
		rig.stop()
		return nil, err
	}
	return rig, nil
}

func (r *modelRig) stop() {
	r.client.http.CloseIdleConnections()
	r.host.stop()
	if r.closeProvider != nil {
		r.closeProvider()
	}
	r.double.Close()
}

// prepare deploys the workflows, sees that the host does all that its figures are
// about, and learns what it asks for.
func (r *modelRig) prepare(ctx context.Context) error {
	docs := [][]byte{modelChain()}
	for _, streaming := range []bool{false, true} {
		_, doc := modelWorkflow(streaming)
		docs = append(docs, doc)
	}
	for _, doc := range docs {
		if _, err := r.client.do(ctx, http.MethodPost, "/v1/workflows", doc); err != nil {
			return err
		}
	}
	if err := r.probe(ctx); err != nil {
		return err
	}
	_, w, err := r.call(ctx, r.client.hosted(false))
	if err != nil {
		return err
	}
	schema, err := schemaIn(w.Body)
	if err != nil {
		return err
	}
	r.direct, r.closeProvider, err = direct(r.double.URL(), schema)
	return err
}

// probe fails unless answers are validated, and secrets taken out of them.
func (r *modelRig) probe(ctx context.Context) error {
	wrong, err := r.client.recorded(ctx, probeWrong)
	if err != nil {
		return err
	}
	leak, err := r.client.recorded(ctx, probeLeak)
	switch {
	case err != nil:
		return err
	case !strings.Contains(wrong, `"run.failed"`) || strings.Contains(wrong, `"run.completed"`):
		return errors.New("the host takes an answer that its schema refuses: " + wrong)
	case !strings.Contains(leak, `"run.completed"`) || strings.Contains(leak, doubleKey):
		return errors.New("the host records a secret, or does not get by with it: " + strings.ReplaceAll(leak, doubleKey, "the secret"))
	}
	return nil
}

// row measures a load on the host and on the double alone, taking turns, so that
// other load falls on both. The first turn warms up and does not count. A host that
// is overrun is not asked again.
func (r *modelRig) row(ctx context.Context, o options, row modelRow, hosted asker) (modelRow, error) {
	n := max(1, int(o.modelSeconds().Seconds()*float64(row.rate)/rounds))
	alone, err := r.paced(ctx, r.direct, row.rate, max(1, n/3), row.how)
	if err != nil {
		return row, err
	}
	if warm, err := r.paced(ctx, hosted, row.rate, max(1, n/3), row.how); err != nil || warm.success() < overrun {
		row.base, row.host = alone, warm
		return row, err
	}
	for range rounds {
		if err := r.turn(ctx, &row, n, hosted); err != nil {
			return row, err
		}
		if row.host.success() < overrun {
			break
		}
	}
	return row, nil
}

// overrun is the part that succeeds, in percent, where work heaps up: figures of it
// would say how long the load lasted.
const overrun = 90

// turn measures both sides once.
func (r *modelRig) turn(ctx context.Context, row *modelRow, n int, hosted asker) error {
	own := processCPU()
	base, err := r.paced(ctx, r.direct, row.rate, n, row.how)
	if err != nil {
		return err
	}
	row.baseCPU += processCPU() - own
	before, err := r.host.proc()
	if err != nil {
		return err
	}
	own = processCPU()
	host, err := r.paced(ctx, hosted, row.rate, n, row.how)
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

// most raises the rate until less than 99 % succeed.
func (r *modelRig) most(ctx context.Context, o options, durability string) (mostRow, error) {
	out := mostRow{durability: durability, how: answers{wait: thinks, pieces: 8}}
	d := max(o.seconds, time.Second)
	for rate := float64(o.pace(100)); ; rate *= 1.15 {
		f, err := r.paced(ctx, r.client.hosted(false), int(rate), max(1, int(d.Seconds()*rate)), out.how)
		if err != nil {
			return out, err
		}
		if f.success() < 99 {
			out.broke, out.beyond = int(rate), f
			return out, nil
		}
		out.rate, out.at = int(rate), f
		if o.quick {
			return out, nil
		}
	}
}
