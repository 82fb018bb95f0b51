package scalesim

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

const (
	// Default is how many runs a queue hands out unless it is told otherwise.
	Default = 8192
	// raised is what the page compares it with.
	raised = 65536
	// bearable is how long 99 of 100 runs may wait, in seconds.
	bearable = 1
	// index is how much memory a NATS server is given for the index of subjects, and disk
	// how much room the log has, in bytes.
	index, disk = 32 << 30, 8e12
)

// one is how many runs a second an installation bears by arithmetic: as many as its queue
// hands out, and as its log takes.
func one(m Measured, d Day, s Shape, handedOut int) (perSec float64, bound string) {
	byLog := m.FramesPerSec(d) / s.Frames
	if byQueue := float64(handedOut) / d.held(s); byQueue < byLog { // of a run that is held no time, without an end
		return byQueue, byHandedOut
	}
	return byLog, "frames"
}

const byHandedOut = "runs handed out"

// unlike are the shapes that differ in what an installation bears; the others do in CPU.
func unlike(all []Shape) []Shape {
	return slices.CompactFunc(slices.Clone(all), func(a, b Shape) bool { return a.Calls == b.Calls && a.Frames == b.Frames })
}

// limits are those of the queue that make a difference.
func limits(m Measured, d Day, s Shape) []int {
	if _, bound := one(m, d, s, Default); bound == byHandedOut {
		return []int{Default, raised}
	}
	return []int{Default}
}

// held is for how long a dispatcher holds a run, on the average, in seconds.
func (d Day) held(s Shape) float64 {
	sum := 0
	for _, h := range d.holds(s.Calls) {
		sum += h
	}
	return float64(sum) / quantiles
}

// fewest finds how many installations carry the day, by trying.
func fewest(m Measured, d Day, p Plan) (Plan, Outcome) {
	perSec, _ := one(m, d, p.Shape, p.HandedOut)
	for n := math.Ceil(d.rate(hour/2) / perSec); ; n = math.Ceil(n * 1.1) {
		p.Installations = int(n)
		if out := Simulate(m, d, p); out.P99 <= bearable {
			return p, out
		}
	}
}

// tables renders those of docs/scaling.md; report is bench/report.md.
func tables(report string) (string, error) {
	m, err := Checked(report)
	if err != nil {
		return "", err
	}
	d := Billion()
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	w("Measured on %s. A log with one server that syncs every write took %s frames a second, an event log with SQLite read %s, and a NATS server held %.0f bytes of memory for each subject.\n\n",
		m.Machine, thousands(m.AppendsPerSec), thousands(m.IngestPerSec), m.HeapPerSubject)
	measuredRows(w, m)
	w("\nOne installation, at a load that never changes, with %.0f %% to spare:\n\n", 100*d.Spare)
	oneRows(w, m, d)
	w("\n%s runs in a day, the busiest moment %.1f times the mean: %s runs a second. %s tenants, of which the largest has %.2f %% of the load. A call of a model takes %s.\n"+
		"Simulated is the busiest hour, run by run. The fewest installations of which 99 %% of the runs wait %d s at the most, tried from the arithmetic's upwards in steps of a tenth:\n\n",
		thousands(d.Runs), d.Peak, thousands(d.rate(hour/2)), thousands(float64(d.Tenants)), 100*d.tenants()[0], modelTimes(d), bearable)
	needed := planRows(w, m, d)
	w("\nWhat such a day leaves behind, and what the installations spend at the busiest moment:\n\n")
	leftRows(w, m, d, needed)
	return b.String(), nil
}

type writer func(format string, args ...any)

func measuredRows(w writer, m Measured) {
	w("| a run of | frames | subjects | bytes in the log | CPU, ms | %s |\n|---|---|---|---|---|%s\n", strings.Join(Services, " | "), strings.Repeat("---|", len(Services)))
	for _, s := range m.Shapes {
		w("| %s | %.1f | %.1f | %s | %.2f |", s.Name, s.Frames, s.Subjects, thousands(s.Bytes), s.TotalCPU())
		for _, name := range Services {
			w(" %.2f |", s.CPU[name])
		}
		w("\n")
	}
}

func oneRows(w writer, m Measured, d Day) {
	w("| a run of | held, mean | handed out at a time | runs a second | in a day | bound by |\n|---|---|---|---|---|---|\n")
	for _, s := range unlike(m.Shapes) {
		for _, handedOut := range limits(m, d, s) {
			perSec, bound := one(m, d, s, handedOut)
			w("| %s | %.1f s | %s | %s | %.1f million | %s |\n", s.Name, d.held(s), thousands(float64(handedOut)), thousands(perSec), perSec*86400/1e6, bound)
		}
	}
}

// planRows gives the fewest installations for runs of so many calls, placed by size, with
// the limit raised.
func planRows(w writer, m Measured, d Day) map[int]int {
	needed := map[int]int{}
	w("| a run of | handed out at a time | tenants placed | by arithmetic | simulated | waits: half, 99 %%, all | the busiest: runs, frames a second, handed out |\n|---|---|---|---|---|---|---|\n")
	for _, s := range unlike(m.Shapes) {
		for _, handedOut := range limits(m, d, s) {
			for _, by := range []Placement{ByHash, BySize} {
				p, out := fewest(m, d, Plan{Shape: s, Placement: by, HandedOut: handedOut})
				perSec, _ := one(m, d, s, handedOut)
				w("| %s | %s | %s | %.0f | **%d** | %d s, %d s, %d s | %s, %s, %s |\n", s.Name, thousands(float64(handedOut)), by, math.Ceil(d.rate(hour/2)/perSec), p.Installations,
					out.P50, out.P99, out.Max, thousands(float64(out.Busiest.Runs)), thousands(float64(out.Busiest.Frames)), thousands(float64(out.Busiest.HandedOut)))
				needed[s.Calls] = p.Installations
			}
		}
	}
	return needed
}

func leftRows(w writer, m Measured, d Day, needed map[int]int) {
	w("| a run of | installations | log, each copy | … of one of them | index of subjects of one of them | full after, %d GiB of index, %.0f TB of disk | cores, all | … of which NATS |\n|---|---|---|---|---|---|---|---|\n", index>>30, disk/1e12)
	for _, s := range m.Shapes {
		n := float64(needed[s.Calls])
		logged, indexed := d.Runs*s.Bytes/n, d.Runs*s.Subjects*m.HeapPerSubject/n
		cores := func(ms float64) string { return thousands(math.Ceil(d.rate(hour/2) * ms / 1000)) }
		w("| %s | %.0f | %.1f TB a day | %.0f GB a day | %.1f GiB a day | %.1f days, %.1f days | %s | %s |\n", s.Name, n, d.Runs*s.Bytes/1e12, logged/1e9, indexed/(1<<30),
			index/indexed, disk/logged, cores(s.TotalCPU()), cores(s.CPU["nats"]))
	}
}

func modelTimes(d Day) string {
	var parts []string
	for _, s := range slices.Sorted(maps.Keys(d.Model)) {
		parts = append(parts, fmt.Sprintf("%d s in %.0f %%", s, 100*d.Model[s]))
	}
	return strings.Join(parts, ", ")
}

// thousands writes a number with commas.
func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

const begins, ends = "<!-- simulated: make gen -->\n", "<!-- end of what is simulated -->\n"

// Into puts the tables in their place in a page; report is bench/report.md.
func Into(page, report string) (string, error) { return into(page, report, begins, ends, tables) }

// into puts what is rendered between two lines of a page.
func into(page, report, from, to string, rendered func(report string) (string, error)) (string, error) {
	before, rest, found := strings.Cut(page, from)
	_, after, closed := strings.Cut(rest, to)
	if !found || !closed {
		return "", fmt.Errorf("the page has no place for what is rendered: want %q and %q", from, to)
	}
	text, err := rendered(report)
	return before + from + "\n" + text + "\n" + to + after, err
}
