package main

import (
	"fmt"
	"os"
	"strings"
)

// basis says how far a figure travels.
type basis string

const (
	// absolute figures are this machine's, with whatever else it was doing.
	absolute basis = "absolute"
	// ratio figures divide two measurements of the same run: they travel.
	ratio basis = "ratio"
	// count figures are the same everywhere.
	count basis = "count"
)

// figure is a measurement beside what it should be and what could be at best.
type figure struct {
	what     string
	basis    basis
	measured string
	// target is what it should be; empty: nothing, it explains another figure.
	target string
	met    bool
	// ceiling is what the machine does without our code, measured in the same run.
	ceiling string
}

// word says whether the target is met.
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
	p("| what | is | target | measured | met | ceiling, same run |\n|---|---|---|---|---|---|\n")
	for _, f := range figures {
		p("| %s | %s | %s | %s | %s | %s |\n", f.what, f.basis, dash(f.target), f.measured, f.word(), dash(f.ceiling))
	}
}

// bases explains the second column.
const bases = "An absolute figure is this machine's, under whatever load it had; a ratio divides two measurements of the same run, and travels\n" +
	"between machines; a count is the same everywhere.\n"

// busy tells what else the machine was doing, as far as its load average says.
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

// spreadTable writes how single latencies are spread.
func spreadTable(p func(string, ...any), s samples) {
	p("| up to | accepts | of all, so far |\n|---|---|---|\n")
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
