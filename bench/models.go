package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"waybill.dev/waybill/test/double/openaicompat"
)

// modelRates are the calls per second: one that leaves room, and the target's. streamRate is the
// rate of calls with recorded pieces.
var modelRates = []int{100, 500}

const streamRate = 10

// modelFigures are the figures of model calls.
type modelFigures struct {
	load   string // other load of the machine
	chains []chainRow
	rows   []modelRow
	stream []modelRow
	most   []mostRow
}

// modelRow compares a load on a host with the same load on the double alone.
type modelRow struct {
	durability string
	how        answers
	rate       int
	host, base callFigures
	// hostCPU and ownCPU are the CPU times of the host's process and of this one (load client and
	// double), for all calls. baseCPU is this one's without a host.
	hostCPU, ownCPU, baseCPU time.Duration
	proc                     proc
}

// mostRow is the highest rate that a host sustained.
type mostRow struct {
	durability string
	how        answers
	rate       int
	at         callFigures
	// broke is the rate that it did not sustain, with its figures.
	broke  int
	beyond callFigures
}

// models measures the section, with a separate host per durability.
func models(ctx context.Context, r *report) error {
	r.models.load = busy()
	for _, durability := range []string{"sync", "process"} {
		if err := r.models.measure(ctx, r.options, durability); err != nil {
			return fmt.Errorf("models, durability %s: %w", durability, err)
		}
	}
	return nil
}

// modelRig is a double, a host that calls it, and the direct client.
type modelRig struct {
	modelCaller
	host          *host
	client        *client
	direct        asker
	closeProvider func()
}

// thinks is the double's delay in the slow loads.
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
// the host. At the default of 100, collections were half of the baseline's p99 and a sixth of the
// CPU of both.
const ownGC = 400

// withModelRig runs a measurement on a separate host.
func withModelRig(ctx context.Context, o options, durability string, do func(*modelRig) error) error {
	defer debug.SetGCPercent(debug.SetGCPercent(ownGC))
	rig, err := newModelRig(ctx, o, durability)
	if err != nil {
		return err
	}
	defer rig.stop()
	return do(rig)
}

// pace lowers a rate for a short try to one that any machine sustains.
func (o options) pace(rate int) int {
	if o.quick {
		return min(rate, 20)
	}
	return rate
}

// patience is how much longer than the double a call may take, from its due time, to succeed. A
// short try is not a measurement and must also succeed on a busy machine.
func (o options) patience() time.Duration {
	if o.quick {
		return 30 * time.Second
	}
	return time.Second
}

// modelSeconds is the duration of a load.
func (o options) modelSeconds() time.Duration {
	if o.quick {
		return o.seconds
	}
	return max(o.seconds, 21*time.Second)
}

// strictCatalogue writes a catalogue in which the double takes strict schemas, with the keywords of all vendors.
func strictCatalogue(dir string) (string, error) {
	f, err := os.CreateTemp(dir, "models-*.json")
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(f, `{"version":1,"asOf":"2026-11-01","models":[{"provider":"double","model":%q,"schemaDialect":"azure"}]}`, openaicompat.DefaultModel)
	return f.Name(), errors.Join(err, f.Close())
}

func newModelRig(ctx context.Context, o options, durability string) (*modelRig, error) {
	rig := &modelRig{modelCaller: modelCaller{patience: o.patience()}}
	catalogue, err := strictCatalogue(o.dir)
	if err != nil {
		return nil, err
	}
	rig.double = newModelDouble()
	rig.host, err = startHostIn(ctx, []string{"WAYBILL_PROVIDER_DOUBLE_KEY=" + doubleKey}, o.bin, o.dir, "--durability", durability,
		"--provider", "double="+rig.double.URL(), "--default-model", "double/"+openaicompat.DefaultModel, "--models", catalogue, "--metrics-addr", "127.0.0.1:0")
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

// prepare deploys the workflows, checks that the host does everything its figures include, and
// captures the requested schema.
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

// probe fails unless answers are validated and secrets redacted.
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
		return errors.New("the host accepted an answer that violates the schema: " + wrong)
	case !strings.Contains(leak, `"run.completed"`) || strings.Contains(leak, doubleKey):
		return errors.New("the host recorded a secret, or failed the run: " + strings.ReplaceAll(leak, doubleKey, "the secret"))
	}
	return nil
}

// row measures a load on the host and on the double alone, alternating, so that other load affects
// both. The first turn is a warm-up. A host that is overrun gets no further turns.
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

// overrun is the success rate, in percent, below which the queue grows. Latencies would then depend
// only on the load's duration.
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
