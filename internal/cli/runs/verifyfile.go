package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"waybill.dev/waybill/internal/archive"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/runcheck"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// recorded is the content of a file: a debug bundle, a document of events, or lines of events.
type recorded struct {
	BundleVersion string             `json:"bundleVersion"`
	Run           *runstate.Snapshot `json:"run"`
	Events        []wire.Event       `json:"events"`
	RedactionMode string             `json:"redactionMode"`
	Truncated     bool               `json:"truncated"`
	Archive       json.RawMessage    `json:"archive"`
}

// checkFile reads a run from a file.
func checkFile(stdin io.Reader, name string) (*runcheck.Check, error) {
	from := "@" + name
	if name == "-" {
		from = name
	}
	doc, err := Read(stdin, "--file", from)
	if err != nil {
		return nil, err
	}
	if archive.Packed(doc) {
		if doc, err = archive.Unpack(doc); err != nil {
			return nil, exit.With(exit.Failed, fmt.Errorf("--file %s: %w", name, err))
		}
	}
	r, err := parseRecorded(doc)
	if err != nil {
		return nil, exit.Usagef("--file %s: %w", name, err)
	}
	if len(r.Archive) > 0 {
		if _, err := archive.Open(doc); err != nil {
			return nil, exit.With(exit.Failed, fmt.Errorf("--file %s: %w", name, err))
		}
	}
	return r.check(), nil
}

// check checks a run without its host.
func (r *recorded) check() *runcheck.Check {
	k := runcheck.New(runcheck.Source{Trimmed: r.Run != nil && r.RedactionMode != "", Cut: r.Truncated})
	for _, e := range r.Events {
		k.Add(e)
	}
	if r.Run == nil {
		k.Skip(runcheck.Snapshot, "the file has no snapshot")
		return k
	}
	k.Against(r.Run)
	return k
}

var errNotRecorded = errors.New("not a debug bundle, a document of events, or one event per line")

func parseRecorded(doc []byte) (*recorded, error) {
	var r recorded
	if json.Unmarshal(doc, &r) == nil && r.Events != nil {
		return &r, nil
	}
	r = recorded{}
	for line := range bytes.Lines(doc) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var e struct {
			wire.Event

			Sequence *int `json:"sequence"`
		}
		if json.Unmarshal(line, &e) != nil || e.Sequence == nil {
			return nil, errNotRecorded
		}
		e.Event.Sequence = *e.Sequence
		r.Events = append(r.Events, e.Event)
	}
	if len(r.Events) == 0 {
		return nil, errNotRecorded
	}
	return &r, nil
}
