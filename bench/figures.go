package main

import (
	"fmt"
	"os"
	"strings"
)

// basis is how portable a figure is.
type basis string

const (
	// absolute figures depend on this machine and its other load.
	absolute basis = "absolute"
	// ratio figures divide two measurements of the same run, so they are portable.
	ratio basis = "ratio"
	// count figures are equal on every machine.
	count basis = "count"
)

// figure is a measurement with its target and its ceiling.
type figure struct {
	what     string
	basis    basis
	measured string
	// target is the goal; empty for a figure that only explains another one.
	target string
	met    bool
	// ceiling is the machine's limit without our code, measured in the same run.
	ceiling string
}

// word returns whether the target is met.
func (f figure) word() string {
	switch {
	case f.target == "":
		return "–"
	case f.met:
		return "yes"
	}
	return "**no**"
}

// figureTable writes figures; an empty cell is a dash.
func figureTable(p func(string, ...any), figures []figure) {
	dash := func(s string) string {
		if s == "" {
			return "–"
		}
		return s
	}
	p("| what | basis | target | measured | met | ceiling, same run |\n|---|---|---|---|---|---|\n")
	for _, f := range figures {
		p("| %s | %s | %s | %s | %s | %s |\n", f.what, f.basis, dash(f.target), f.measured, f.word(), dash(f.ceiling))
	}
}

// bases explains the second column.
const bases = "Absolute figures depend on this machine and its other load. Ratios divide two measurements of the same run and are portable.\n" +
	"Counts are the same on every machine.\n"

// busy returns the machine's load average.
func busy() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(b))
	if len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], ", ")
}

// spreadTable writes the distribution of single latencies.
func spreadTable(p func(string, ...any), s samples) {
	p("| up to | accepts | cumulative |\n|---|---|---|\n")
	sum := 0
	for _, b := range s.spread() {
		sum += b.count
		bound := "more"
		if b.upTo > 0 {
			bound = fmt.Sprint(b.upTo)
		}
		p("| %s | %d | %.2f %% |\n", bound, b.count, 100*float64(sum)/float64(len(s)))
	}
}
