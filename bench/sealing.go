package main

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/test/double/openaicompat"
)

const (
	// sealingRuns is the number of runs that wait to be sealed, sealingRate the load next to them.
	sealingRuns = 8_000
	sealingRate = 100
	// sealingPatience limits the wait for runs to be sealed.
	sealingPatience = 10 * time.Minute
	sealingWorkflow = "bench-ask-1"
	// sealingWindow is the hot window; a sweep starts after a tenth of it.
	sealingWindow = 10 * time.Second
	// sealingCompaction is a bit more than the time within which a NATS server compacts its files.
	sealingCompaction = 130 * time.Second
	// leastSealed is the minimum of runs sealed per second next to the load, and mostBytes the maximum
	// size of a sealed run.
	leastSealed = sealingRate
	mostBytes   = 4096
)

// sealingFigures are the rates at which runs of one model call are sealed, and the size of a sealed run.
type sealingFigures struct {
	runs int
	idle rates
	// steady is next to a load of sealingRate runs per second, busy next to 64 clients.
	steady, busy rates
	// cpu is the CPU time of the host for each run sealed without other work.
	cpu time.Duration
	// perRun is the growth of the data directory for each sealed run, in bytes, by parts.
	perRun map[string]float64
}

// rates are runs per second.
type rates struct{ created, sealed float64 }

// sealingRig is a host that seals runs.
type sealingRig struct {
	*host

	client  *client
	command []string
	created atomic.Int64
}

func sealing(ctx context.Context, r *report) error {
	o := r.options
	double := newModelDouble()
	defer double.Close()
	double.answersLike(answers{pieces: 1})
	catalogue, err := strictCatalogue(o.dir)
	if err != nil {
		return err
	}
	h, err := startHostIn(ctx, []string{"WAYBILL_PROVIDER_DOUBLE_KEY=" + doubleKey}, o.bin, o.dir,
		"--provider", "double="+double.URL(), "--default-model", "double/"+openaicompat.DefaultModel, "--models", catalogue,
		"--metrics-addr", "127.0.0.1:0", "--max-queue-wait", "0", "--start-delay", "0")
	if err != nil {
		return err
	}
	defer h.stop()
	s := &sealingRig{host: h, command: h.command, client: newClient(h.ready.HTTP, 64)}
	if _, err := s.client.do(ctx, http.MethodPost, "/v1/workflows", questionsWorkflow(sealingWorkflow, 1)); err != nil {
		return err
	}
	runs := sealingRuns
	if o.quick {
		runs = 1000
	}
	if r.sealing, err = s.measure(ctx, runs, 5*o.seconds); err != nil {
		return fmt.Errorf("%w; the host's log:\n%s", err, h.out.String())
	}
	return nil
}

func (s *sealingRig) measure(ctx context.Context, runs int, lasts time.Duration) (f sealingFigures, err error) {
	f.runs = runs
	if err := s.fill(ctx, runs); err != nil {
		return f, err
	}
	if err := sleep(ctx, sealingWindow); err != nil { // then all runs are due
		return f, err
	}
	if err := s.restartSealing(ctx); err != nil {
		return f, err
	}
	before, err := s.proc()
	if err != nil {
		return f, err
	}
	if f.idle, err = s.nextTo(ctx, 0, func() error { return s.settle(ctx) }); err != nil {
		return f, err
	}
	after, err := s.proc()
	if err != nil {
		return f, err
	}
	f.cpu = (after.cpu - before.cpu) / time.Duration(runs)
	all := sealingWindow + lasts
	if f.steady, err = s.nextTo(ctx, sealingWindow, func() error {
		_, _, err := drive(ctx, time.Second/sealingRate, int(all.Seconds()*sealingRate), func(time.Time) error { return s.run(ctx) })
		return err
	}); err != nil {
		return f, err
	}
	if f.busy, err = s.nextTo(ctx, sealingWindow, func() error {
		_, err := load(ctx, 64, all, s.run)
		return err
	}); err != nil {
		return f, err
	}
	f.perRun, err = s.size(ctx, runs)
	return f, err
}

// size measures the growth of the data directory by a number of runs when they are sealed.
func (s *sealingRig) size(ctx context.Context, runs int) (map[string]float64, error) {
	usage := func() (map[string]float64, error) {
		if err := s.settle(ctx); err != nil {
			return nil, err
		}
		// A server compacts its files within two minutes.
		if err := sleep(ctx, sealingCompaction); err != nil {
			return nil, err
		}
		if err := s.restartSealing(ctx); err != nil { // write-ahead logs are in their files then
			return nil, err
		}
		return diskUsage(filepath.Join(s.dir, "data"))
	}
	before, err := usage()
	if err != nil {
		return nil, err
	}
	if err := s.fill(ctx, runs); err != nil {
		return nil, err
	}
	after, err := usage()
	for part := range after {
		after[part] = (after[part] - before[part]) / float64(runs)
	}
	return after, err
}

// diskUsage returns the disk space of the parts of a data directory, and their sum as "in total".
func diskUsage(dir string) (map[string]float64, error) {
	out := map[string]float64{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		part, err := filepath.Rel(dir, path)
		if i := slices.Index(strings.Split(part, "/"), "streams"); i >= 0 {
			part = strings.Split(part, "/")[i+1]
		}
		part = strings.TrimSuffix(strings.TrimSuffix(part, "-wal"), "-shm")
		used := float64(info.Size())
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			used = float64(st.Blocks) * 512
		}
		out[part] += used
		out["in total"] += used
		return err
	})
	return out, err
}

func (s *sealingRig) run(ctx context.Context) error {
	err := s.client.run(ctx, []byte(`{"workflowId":"`+sealingWorkflow+`"}`))
	if err == nil {
		s.created.Add(1)
	}
	return err
}

// fill executes a number of runs.
func (s *sealingRig) fill(ctx context.Context, runs int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(64)
	for range runs {
		g.Go(func() error { return s.run(ctx) })
	}
	return g.Wait()
}

// restartSealing restarts the host with a hot window.
func (s *sealingRig) restartSealing(ctx context.Context) error {
	s.client.http.CloseIdleConnections()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	_ = s.cmd.Wait()
	if err := s.begin(ctx, s.env, append(slices.Clone(s.command), "--hot-window", sealingWindow.String())); err != nil {
		return err
	}
	s.client = newClient(s.ready.HTTP, 64)
	return nil
}

// nextTo measures how many runs are created and sealed per second while a load runs, without its first
// part: its runs are sealed later.
func (s *sealingRig) nextTo(ctx context.Context, first time.Duration, load func() error) (rates, error) {
	ended := make(chan error, 1)
	go func() { ended <- load() }()
	if err := sleep(ctx, first); err != nil {
		return rates{}, err
	}
	before, err := s.metric(ctx, "waybill_cold_runs")
	if err != nil {
		return rates{}, err
	}
	began, created := time.Now(), s.created.Load()
	if err := <-ended; err != nil {
		return rates{}, err
	}
	took := time.Since(began).Seconds()
	after, err := s.metric(ctx, "waybill_cold_runs")
	return rates{created: float64(s.created.Load()-created) / took, sealed: (after - before) / took}, err
}

// settle waits until all runs are sealed.
func (s *sealingRig) settle(ctx context.Context) error {
	for deadline := time.Now().Add(sealingPatience); time.Now().Before(deadline); {
		n, err := s.metric(ctx, "waybill_cold_runs")
		if err != nil || n >= float64(s.created.Load()) {
			return err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d runs are not sealed after %s", s.created.Load(), sealingPatience)
}

// metric reads a metric without labels.
func (s *sealingRig) metric(ctx context.Context, name string) (float64, error) {
	text, err := operator(ctx, s.ready.Metrics, "/metrics")
	if err != nil {
		return 0, err
	}
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
	if m == nil {
		return 0, nil // of a host without a cold store
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// render writes the figures.
func (f *sealingFigures) render(p func(string, ...any)) {
	rate := func(r rates) string { return fmt.Sprintf("%.0f runs/s", r.sealed) }
	created := func(r rates) string { return fmt.Sprintf("%.0f runs/s created", r.created) }
	total := f.perRun["in total"]
	p("\n## Sealing\n\nRuns of one model call with an answer of 2 KB. %d of them wait when the host starts with `--hot-window %s`.\n\n", f.runs, sealingWindow)
	figureTable(p, []figure{
		{what: "runs sealed without other work", basis: absolute, measured: rate(f.idle)},
		{what: "… CPU of the host for each", basis: absolute, measured: short(f.cpu)},
		{
			what: fmt.Sprintf("runs sealed next to %d runs/s", sealingRate), basis: absolute, measured: rate(f.steady), ceiling: created(f.steady),
			target: fmt.Sprintf("≥ %d/s", leastSealed), met: f.steady.sealed >= 0.95*leastSealed,
		},
		{what: "runs sealed next to 64 clients", basis: absolute, measured: rate(f.busy), ceiling: created(f.busy)},
		{
			what: "disk space of a sealed run", basis: count, measured: fmt.Sprintf("%.0f bytes", total),
			target: fmt.Sprintf("≤ %d bytes", mostBytes), met: total <= mostBytes,
		},
	})
	p("\n| part | bytes for each run |\n|---|---|\n")
	parts := make([]string, 0, len(f.perRun))
	for part, bytes := range f.perRun {
		if bytes >= 1 && part != "in total" {
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	for _, part := range parts {
		p("| `%s` | %.0f |\n", part, f.perRun[part])
	}
}
