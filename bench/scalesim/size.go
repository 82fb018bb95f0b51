package scalesim

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// Size is a load for which deploy has values.
type Size struct {
	Name string `json:"name"`
	// RunsPerSec is the arrival rate at the busiest moment. All runs have the costliest shape.
	RunsPerSec float64 `json:"runsPerSec"`
	// Kept is the number of runs that the log has room for.
	Kept float64 `json:"kept"`
	// Clients is the number of clients that follow event streams at the same time.
	Clients float64 `json:"clients"`
}

// Sizes are the sizes of docs/kubernetes.md.
func Sizes() []Size {
	return []Size{{"small", 1, 1e6, 1000}, {"medium", 10, 10e6, 5000}, {"large", 100, 50e6, 10_000}}
}

// Costliest is the shape with the most CPU time.
func (m Measured) Costliest() Shape {
	costliest := m.Shapes[0]
	for _, s := range m.Shapes[1:] {
		if s.TotalCPU() > costliest.TotalCPU() {
			costliest = s
		}
	}
	return costliest
}

// Need are the resources that a load needs, without a reserve.
type Need struct {
	HandedOut float64 `json:"handedOut"`
	Frames    float64 `json:"framesPerSec"`
	// Cores are the cores of all replicas of a service together. Every event log and every NATS
	// server does all of the work, so theirs are per replica.
	Cores map[string]float64 `json:"cores"`
	// Index is the memory of each NATS server for the subjects of the kept runs, Log the disk of
	// each, in bytes.
	Index float64 `json:"indexBytes"`
	Log   float64 `json:"logBytes"`
	// Days is the time in which so many runs arrive. Hours is how long a new event log with SQLite
	// takes to read them.
	Days  float64 `json:"daysToFill"`
	Hours float64 `json:"hoursToRead"`
}

// Needs computes the needs of a size.
func (m Measured) Needs(d Day, z Size) Need {
	s := m.Costliest()
	n := Need{
		HandedOut: z.RunsPerSec * d.meanHold(s),
		Frames:    z.RunsPerSec * s.Frames,
		Cores:     map[string]float64{},
		Index:     z.Kept * s.Subjects * m.HeapPerSubject,
		Log:       z.Kept * s.Bytes,
		Days:      z.Kept / z.perDay(d),
		Hours:     z.Kept * s.Frames / m.IngestPerSec / hour,
	}
	for _, name := range Services {
		n.Cores[name] = z.RunsPerSec * s.CPU[name] / 1000
	}
	return n
}

func (z Size) perDay(d Day) float64 { return z.RunsPerSec / d.Peak * 86400 }

// sizesTable renders the table of docs/kubernetes.md.
func sizesTable(m Measured) string {
	d := Billion()
	var b strings.Builder
	row := func(name string, cell func(Size, Need) string) {
		b.WriteString("| " + name + " |")
		for _, z := range Sizes() {
			b.WriteString(" " + cell(z, m.Needs(d, z)) + " |")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "For runs of \"%s\", measured on two cores ([scaling.md](scaling.md#a-billion-runs-a-day)):\n\n", m.Costliest().Name)
	row("", func(z Size, _ Need) string { return z.Name })
	b.WriteString("|---|" + strings.Repeat("---|", len(Sizes())) + "\n")
	row("runs a second, at the peak", func(z Size, _ Need) string { return thousands(z.RunsPerSec) })
	row(fmt.Sprintf("runs a day, with a peak of %.1f times the mean", d.Peak), func(z Size, _ Need) string { return thousands(z.perDay(d)) })
	row("runs handed out", func(_ Size, n Need) string { return thousands(n.HandedOut) })
	row("frames a second", func(_ Size, n Need) string { return thousands(n.Frames) })
	for _, name := range []string{"gateway", "dispatcher", "acceptor", "redactor"} {
		row("cores, all "+name+"s", func(_ Size, n Need) string { return fmt.Sprintf("%.2f", n.Cores[name]) })
	}
	row("cores, each event log", func(_ Size, n Need) string { return fmt.Sprintf("%.2f", n.Cores["eventlog"]) })
	row("cores, each NATS server", func(_ Size, n Need) string { return fmt.Sprintf("%.2f", n.Cores["nats"]) })
	row("runs kept", func(z Size, _ Need) string { return thousands(z.Kept) })
	row("… days until so many have arrived", func(_ Size, n Need) string { return thousands(n.Days) })
	row("… memory for the index of subjects, each NATS server", func(_ Size, n Need) string { return fmt.Sprintf("%.1f GB", n.Index/1e9) })
	row("… disk for the log, each NATS server", func(_ Size, n Need) string { return thousands(n.Log/1e9) + " GB" })
	row("… time for a new event log with SQLite to read them", func(_ Size, n Need) string { return fmt.Sprintf("%.1f h", n.Hours) })
	return b.String()
}

// NeedsJSON renders needs.json, which the tests of the deployment read.
func (m Measured) NeedsJSON() ([]byte, error) {
	type sizeNeed struct {
		Size
		Need
	}
	d := Billion()
	doc := struct {
		Spare               float64    `json:"spare"`
		FramesPerSec        float64    `json:"maxFramesPerSec"`
		DefaultMaxHandedOut int        `json:"defaultMaxHandedOut"`
		Sizes               []sizeNeed `json:"sizes"`
	}{Spare: d.Spare, FramesPerSec: round(m.FramesPerSec(d)), DefaultMaxHandedOut: DefaultMaxHandedOut}
	for _, z := range Sizes() {
		doc.Sizes = append(doc.Sizes, sizeNeed{z, m.Needs(d, z).rounded()})
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	return append(b, '\n'), err
}

// rounded removes digits that depend on the processor's floating-point unit.
func (n Need) rounded() Need {
	for _, v := range []*float64{&n.HandedOut, &n.Frames, &n.Index, &n.Log, &n.Days, &n.Hours} {
		*v = round(*v)
	}
	for name := range n.Cores {
		n.Cores[name] = round(n.Cores[name])
	}
	return n
}

func round(v float64) float64 { return math.Round(v*1e6) / 1e6 }
