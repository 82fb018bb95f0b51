package scalesim

import (
	"fmt"
	"strings"
)

// Size is a load that there are values for, in deploy.
type Size struct {
	Name string
	// RunsPerSec arrive at the busiest moment, and are of the costliest shape.
	RunsPerSec float64
	// Kept is how many runs the log has room for.
	Kept float64
	// Clients follow event streams at a time.
	Clients float64
}

// Sizes are those of docs/kubernetes.md.
func Sizes() []Size {
	return []Size{{"small", 1, 1e6, 1000}, {"medium", 10, 10e6, 5000}, {"large", 100, 50e6, 10_000}}
}

// Costliest is the shape that takes the most CPU.
func (m Measured) Costliest() Shape {
	most := m.Shapes[0]
	for _, s := range m.Shapes[1:] {
		if s.TotalCPU() > most.TotalCPU() {
			most = s
		}
	}
	return most
}

// Need is what a load takes, without anything to spare.
type Need struct {
	HandedOut, Frames float64
	// Cores are of each service, all its replicas together; of an event log and of a NATS
	// server those of each, for each of them does all of it.
	Cores map[string]float64
	// Index is what each NATS server holds in memory for the runs kept, and Log what each has
	// on disk, in bytes.
	Index, Log float64
	// Days is after how long so many runs were kept, and Hours how long a new event log with
	// SQLite reads them.
	Days, Hours float64
}

// Needs is what a size takes.
func (m Measured) Needs(d Day, z Size) Need {
	s := m.Costliest()
	n := Need{
		HandedOut: z.RunsPerSec * d.held(s), Frames: z.RunsPerSec * s.Frames, Cores: map[string]float64{},
		Index: z.Kept * s.Subjects * m.HeapPerSubject, Log: z.Kept * s.Bytes,
		Days: z.Kept / z.perDay(d), Hours: z.Kept * s.Frames / m.IngestPerSec / hour,
	}
	for _, name := range Services {
		n.Cores[name] = z.RunsPerSec * s.CPU[name] / 1000
	}
	return n
}

func (z Size) perDay(d Day) float64 { return z.RunsPerSec / d.Peak * 86400 }

// sizes renders the table of docs/kubernetes.md.
func sizes(report string) (string, error) {
	m, err := Checked(report)
	if err != nil {
		return "", err
	}
	d := Billion()
	var b strings.Builder
	row := func(name string, cell func(Size, Need) string) {
		b.WriteString("| " + name + " |")
		for _, z := range Sizes() {
			b.WriteString(" " + cell(z, m.Needs(d, z)) + " |")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "A run of \"%s\", as [scaling.md](scaling.md#a-billion-runs-a-day) measured it on two cores:\n\n", m.Costliest().Name)
	row("", func(z Size, _ Need) string { return z.Name })
	b.WriteString("|---|" + strings.Repeat("---|", len(Sizes())) + "\n")
	row("runs a second, at the busiest moment", func(z Size, _ Need) string { return thousands(z.RunsPerSec) })
	row(fmt.Sprintf("… in a day whose busiest moment is %.1f times the mean", d.Peak), func(z Size, _ Need) string { return thousands(z.perDay(d)) })
	row("runs handed out at a time", func(_ Size, n Need) string { return thousands(n.HandedOut) })
	row("frames a second", func(_ Size, n Need) string { return thousands(n.Frames) })
	for _, name := range []string{"gateway", "dispatcher", "acceptor", "redactor"} {
		row("cores: "+name+"s, together", func(_ Size, n Need) string { return fmt.Sprintf("%.2f", n.Cores[name]) })
	}
	row("cores: each event log", func(_ Size, n Need) string { return fmt.Sprintf("%.2f", n.Cores["eventlog"]) })
	row("cores: each NATS server", func(_ Size, n Need) string { return fmt.Sprintf("%.2f", n.Cores["nats"]) })
	row("runs kept", func(z Size, _ Need) string { return thousands(z.Kept) })
	row("… after so many such days", func(_ Size, n Need) string { return thousands(n.Days) })
	row("… index of subjects of each NATS server, live", func(_ Size, n Need) string { return fmt.Sprintf("%.1f GB", n.Index/1e9) })
	row("… log of each NATS server", func(_ Size, n Need) string { return thousands(n.Log/1e9) + " GB" })
	row("… a new event log with SQLite reads them in", func(_ Size, n Need) string { return fmt.Sprintf("%.1f h", n.Hours) })
	return b.String(), nil
}

const (
	sized    = "<!-- sized: make gen -->\n"
	endSized = "<!-- end of what is sized -->\n"
)

// IntoSizing puts the table of sizes in its place in a page; report is bench/report.md.
func IntoSizing(page, report string) (string, error) {
	return into(page, report, sized, endSized, sizes)
}
