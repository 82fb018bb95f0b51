// Package scalesim computes how many installations a very large load needs. It simulates the runs of
// a day's busiest hour, arriving at installations with measured limits.
//
// The costs of a run and the limits of an installation are measured: measured.json, written by
// `go run ./bench -only scale`. The load is assumed: Day, in day.go.
package scalesim

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// Measured are the measurements of one machine.
type Measured struct {
	// Machine describes the machine.
	Machine string `json:"machine"`
	// AppendsPerSec is the frame rate of a log with one server that syncs every write. It comes
	// from bench/report.md.
	AppendsPerSec float64 `json:"-"`
	// IngestPerSec is the frame rate at which an event log with SQLite reads the log.
	IngestPerSec float64 `json:"ingestPerSec"`
	// HeapPerSubject is the memory that a NATS server uses for a subject, in bytes.
	HeapPerSubject float64 `json:"heapPerSubject"`
	// Shapes are the measured kinds of runs.
	Shapes []Shape `json:"shapes"`
}

// Shape is a kind of run with its costs.
type Shape struct {
	Name string `json:"name"`
	// Calls is the number of consecutive model calls.
	Calls int `json:"calls"`
	// Frames, Subjects and Bytes are what a run adds to the log.
	Frames   float64 `json:"frames"`
	Subjects float64 `json:"subjects"`
	Bytes    float64 `json:"bytes"`
	// CPU is the CPU time per run of each service, in milliseconds.
	CPU map[string]float64 `json:"cpuMs"`
}

// TotalCPU is the CPU time per run of all services, in milliseconds.
func (s Shape) TotalCPU() float64 {
	sum := 0.0
	for _, name := range Services {
		sum += s.CPU[name]
	}
	return sum
}

// Services are the processes of an installation, in the order of the page.
var Services = []string{"gateway", "dispatcher", "acceptor", "eventlog", "redactor", "nats"} //nolint:gochecknoglobals // a constant

//go:embed measured.json
var measured []byte

// appendRow is the row of bench/report.md with the frame rate of the log alone.
var appendRow = regexp.MustCompile(`(?m)^\| sync \| 64 \| (\d+) \|$`)

// Load returns the latest measurements. report is the text of bench/report.md.
func Load(report string) (Measured, error) {
	var m Measured
	if err := json.Unmarshal(measured, &m); err != nil {
		return m, fmt.Errorf("measured.json: %w", err)
	}
	row := appendRow.FindStringSubmatch(report)
	if row == nil {
		return m, errors.New("bench/report.md has no row with the frame rate of the log alone, sync, 64 writers: run `make bench`")
	}
	var err error
	if m.AppendsPerSec, err = strconv.ParseFloat(row[1], 64); err != nil {
		return m, err
	}
	if m.AppendsPerSec <= 0 || m.IngestPerSec <= 0 || m.HeapPerSubject <= 0 || len(m.Shapes) == 0 {
		return m, errors.New("measured.json: a figure is missing or not positive: run `make bench ONLY=scale`")
	}
	return m, nil
}
