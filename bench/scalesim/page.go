package scalesim

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

const (
	// raisedMaxHandedOut is the raised limit of the page, next to the default.
	raisedMaxHandedOut = 65536
	// maxWait is the longest acceptable p99 of the queue wait, in seconds.
	maxWait = 1
	// indexBytes is the memory of a NATS server for its index of subjects, diskBytes the disk of a
	// log.
	indexBytes, diskBytes = 32 << 30, 8e12
	// sealBytes and sealSubjects are what a sealed run keeps in the log: its mark (docs/cold-store.md).
	sealBytes, sealSubjects = 560, 1
)

// Limits of an installation.
const (
	limitHandedOut = "runs handed out"
	limitFrames    = "frames"
)

// capacity is the constant run rate that one installation sustains, and the limit that determines
// it.
func capacity(m Measured, d Day, s Shape, maxHandedOut int) (perSec float64, limit string) {
	byLog := m.FramesPerSec(d) / s.Frames
	if byQueue := float64(maxHandedOut) / d.meanHold(s); byQueue < byLog { // +Inf if runs are not held
		return byQueue, limitHandedOut
	}
	return byLog, limitFrames
}

// distinctShapes omits shapes that differ from others in CPU only.
func distinctShapes(all []Shape) []Shape {
	return slices.CompactFunc(slices.Clone(all), func(a, b Shape) bool { return a.Calls == b.Calls && a.Frames == b.Frames })
}

// handedOutLimits returns the values of --max-handed-out to compare: a higher one only if the
// default is what limits the shape.
func handedOutLimits(m Measured, d Day, s Shape) []int {
	if _, limit := capacity(m, d, s, DefaultMaxHandedOut); limit == limitHandedOut {
		return []int{DefaultMaxHandedOut, raisedMaxHandedOut}
	}
	return []int{DefaultMaxHandedOut}
}

// fewestInstallations searches the smallest number of installations whose p99 wait is acceptable.
func fewestInstallations(m Measured, d Day, p Plan) (Plan, Outcome) {
	perSec, _ := capacity(m, d, p.Shape, p.MaxHandedOut)
	for n := math.Ceil(d.rate(hour/2) / perSec); ; n = math.Ceil(n * 1.1) {
		p.Installations = int(n)
		if out := Simulate(m, d, p); out.P99 <= maxWait {
			return p, out
		}
	}
}

// scalingTables renders the tables of docs/scaling.md.
func scalingTables(m Measured) string {
	d := Billion()
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	w("Measured on %s. A log with one server that syncs every write appended %s frames a second. An event log with SQLite read %s frames a second. "+
		"A NATS server used %.0f bytes of memory per subject.\n\n",
		m.Machine, thousands(m.AppendsPerSec), thousands(m.IngestPerSec), m.HeapPerSubject)
	measuredRows(w, m)
	w("\nOne installation under constant load, with a reserve of %.0f %%:\n\n", 100*d.Spare)
	capacityRows(w, m, d)
	w("\nAssumed: %s runs a day, %s runs a second at the peak (%.1f times the mean), %s tenants, the largest with %.2f %% of the load. A model call takes %s.\n"+
		"The simulation runs the busiest hour, run by run, and searches the fewest installations with a p99 wait of at most %d s. It starts at the computed number and adds a tenth per try:\n\n",
		thousands(d.Runs), thousands(d.rate(hour/2)), d.Peak, thousands(float64(d.Tenants)), 100*d.tenants()[0], modelTimes(d), maxWait)
	installations := planRows(w, m, d)
	w("\nThe storage that such a day adds, and the CPU at the peak. \"All kept\" is without retention and cold store. \"Sealed\" is with a hot window of a day: the log has the runs of a day, and of each earlier run its mark, %d bytes and %d subject:\n\n",
		sealBytes, sealSubjects)
	usageRows(w, m, d, installations)
	return b.String()
}

type writer func(format string, args ...any)

func measuredRows(w writer, m Measured) {
	w("| run | frames | subjects | bytes in the log | CPU, ms | %s |\n|---|---|---|---|---|%s\n", strings.Join(Services, " | "), strings.Repeat("---|", len(Services)))
	for _, s := range m.Shapes {
		w("| %s | %.1f | %.1f | %s | %.2f |", s.Name, s.Frames, s.Subjects, thousands(s.Bytes), s.TotalCPU())
		for _, name := range Services {
			w(" %.2f |", s.CPU[name])
		}
		w("\n")
	}
}

func capacityRows(w writer, m Measured, d Day) {
	w("| run | held, mean | `--max-handed-out` | runs a second | runs a day | limited by |\n|---|---|---|---|---|---|\n")
	for _, s := range distinctShapes(m.Shapes) {
		for _, maxHandedOut := range handedOutLimits(m, d, s) {
			perSec, limit := capacity(m, d, s, maxHandedOut)
			w("| %s | %.1f s | %s | %s | %.1f million | %s |\n",
				s.Name, d.meanHold(s), thousands(float64(maxHandedOut)), thousands(perSec), perSec*86400/1e6, limit)
		}
	}
}

// planRows writes the fewest installations for each plan. It returns, by number of calls, those of
// the last plan: placed by size, with the highest limit.
func planRows(w writer, m Measured, d Day) map[int]int {
	installations := map[int]int{}
	w("| run | `--max-handed-out` | tenants placed | installations, computed | installations, simulated | wait p50, p99, max " +
		"| busiest installation: runs a second, frames a second, handed out |\n|---|---|---|---|---|---|---|\n")
	for _, s := range distinctShapes(m.Shapes) {
		for _, maxHandedOut := range handedOutLimits(m, d, s) {
			for _, by := range []Placement{ByHash, BySize} {
				p, out := fewestInstallations(m, d, Plan{Shape: s, Placement: by, MaxHandedOut: maxHandedOut})
				perSec, _ := capacity(m, d, s, maxHandedOut)
				w("| %s | %s | %s | %.0f | **%d** | %d s, %d s, %d s | %s, %s, %s |\n",
					s.Name, thousands(float64(maxHandedOut)), by, math.Ceil(d.rate(hour/2)/perSec), p.Installations,
					out.P50, out.P99, out.Max,
					thousands(float64(out.Busiest.Runs)), thousands(float64(out.Busiest.Frames)), thousands(float64(out.Busiest.HandedOut)))
				installations[s.Calls] = p.Installations
			}
		}
	}
	return installations
}

// daysSealed is after how many days a resource is full of which a day's runs need some, and their marks less.
func daysSealed(all, hot, marks float64) float64 {
	if all <= hot {
		return all / hot
	}
	return 1 + (all-hot)/marks
}

func usageRows(w writer, m Measured, d Day, installations map[int]int) {
	w("| run | installations | log, each copy | log per installation | index of subjects per installation | all kept: days until %d GiB of index, %.0f TB of disk are full | sealed: days until they are full | cores, all | cores, NATS |\n"+
		"|---|---|---|---|---|---|---|---|---|\n", indexBytes>>30, diskBytes/1e12)
	for _, s := range m.Shapes {
		n := float64(installations[s.Calls])
		logged, indexed := d.Runs*s.Bytes/n, d.Runs*s.Subjects*m.HeapPerSubject/n
		cores := func(ms float64) string { return thousands(math.Ceil(d.rate(hour/2) * ms / 1000)) }
		marks, marked := d.Runs*sealBytes/n, d.Runs*sealSubjects*m.HeapPerSubject/n
		w("| %s | %.0f | %.1f TB a day | %.0f GB a day | %.1f GiB a day | %.1f, %.1f | %.1f, %.1f | %s | %s |\n",
			s.Name, n, d.Runs*s.Bytes/1e12, logged/1e9, indexed/(1<<30),
			indexBytes/indexed, diskBytes/logged, daysSealed(indexBytes, indexed, marked), daysSealed(diskBytes, logged, marks), cores(s.TotalCPU()), cores(s.CPU["nats"]))
	}
}

func modelTimes(d Day) string {
	var parts []string
	for _, s := range slices.Sorted(maps.Keys(d.Model)) {
		parts = append(parts, fmt.Sprintf("%d s (%.0f %%)", s, 100*d.Model[s]))
	}
	return strings.Join(parts, ", ")
}

// thousands formats a rounded number with commas.
func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Comments in the pages around generated text.
const (
	beginSimulated = "<!-- simulated: make gen -->\n"
	endSimulated   = "<!-- end of simulated -->\n"
	beginSizes     = "<!-- sizes: make gen -->\n"
	endSizes       = "<!-- end of sizes -->\n"
)

// InsertScaling replaces the generated text of docs/scaling.md.
func (m Measured) InsertScaling(page string) (string, error) {
	return insert(page, beginSimulated, endSimulated, func() string { return scalingTables(m) })
}

// InsertSizes replaces the generated text of docs/kubernetes.md.
func (m Measured) InsertSizes(page string) (string, error) {
	return insert(page, beginSizes, endSizes, func() string { return sizesTable(m) })
}

// insert replaces the text between two lines of a page.
func insert(page, begin, end string, render func() string) (string, error) {
	before, rest, found := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", fmt.Errorf("the page needs the lines %q and %q around its generated text", begin, end)
	}
	return before + begin + "\n" + render() + "\n" + end + after, nil
}
