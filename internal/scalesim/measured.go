// Package scalesim answers how many installations a day of very many runs takes: it lets the
// runs of the day's busiest hours arrive at installations whose limits were measured.
//
// Nothing in it is a guess about Waybill. What a run costs and what an installation bears is
// in measured.json, which `go run ./bench -only scale` writes; what is assumed of the day is
// in day.go, and said on the page.
package scalesim

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// Measured is what one machine showed.
type Measured struct {
	// Machine says which.
	Machine string `json:"machine"`
	// AppendsPerSec is how many frames a log of one server takes that syncs every write:
	// the ceiling of bench/report.md.
	AppendsPerSec float64 `json:"-"`
	// IngestPerSec is how many frames an event log with SQLite reads.
	IngestPerSec float64 `json:"ingestPerSec"`
	// HeapPerSubject is what a NATS server holds in memory for a subject, in bytes.
	HeapPerSubject float64 `json:"heapPerSubject"`
	// Shapes are runs of several kinds.
	Shapes []Shape `json:"shapes"`
}

// Shape is what one run of a kind takes.
type Shape struct {
	Name string `json:"name"`
	// Calls is how many models it asks, one after the other.
	Calls int `json:"calls"`
	// Frames, Subjects and Bytes are what it leaves in the log.
	Frames   float64 `json:"frames"`
	Subjects float64 `json:"subjects"`
	Bytes    float64 `json:"bytes"`
	// CPU is what each service spends on it, in milliseconds.
	CPU map[string]float64 `json:"cpuMs"`
}

// TotalCPU is what all services spend on a run, in milliseconds.
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

// ceiling is the row of bench/report.md that tells what the log alone takes.
var ceiling = regexp.MustCompile(`(?m)^\| sync \| 64 \| (\d+) \|$`)

// Checked is what was measured last; report is bench/report.md.
func Checked(report string) (Measured, error) {
	var m Measured
	if err := json.Unmarshal(measured, &m); err != nil {
		return m, fmt.Errorf("measured.json: %w", err)
	}
	row := ceiling.FindStringSubmatch(report)
	if row == nil {
		return m, errors.New("bench/report.md does not tell what the log takes from 64 writers")
	}
	var err error
	if m.AppendsPerSec, err = strconv.ParseFloat(row[1], 64); err != nil {
		return m, err
	}
	if m.AppendsPerSec <= 0 || m.IngestPerSec <= 0 || m.HeapPerSubject <= 0 || len(m.Shapes) == 0 {
		return m, errors.New("measured.json: a figure is missing, or below what anything takes: measure again")
	}
	return m, nil
}
