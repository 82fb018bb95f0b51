package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/natsperm"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Recording is a run from the log, with its workflow.
type Recording struct {
	Workflow json.RawMessage `json:"workflow"`
	Record   json.RawMessage `json:"record"`
	Events   []wire.Event    `json:"events"`
}

// perShape is the number of runs recorded per workflow with the same event types.
const perShape = 1

// maxEvents is the length limit of recorded runs: longer ones add nothing.
const maxEvents = 1000

// Record writes runs of a tenant into a folder, one file for each way a workflow went.
// The host has to serve NATS.
func (s *Shared) Record(dir, tenant, key string) error {
	if s.host == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	runs, order, err := s.host.logs(ctx, tenant, key)
	if err != nil {
		return err
	}
	shapes := map[string]int{}
	for _, id := range order {
		r := runs[id]
		if len(r.Events) == 0 || !r.Events[len(r.Events)-1].Type.Terminal() {
			continue
		}
		rec, err := wire.ParseRunRecord(r.Record)
		if err != nil {
			return err
		}
		if rec.Opened || rec.Replays() {
			continue // imported runs, or copies of another run
		}
		name := rec.WorkflowID
		if rec.Fork != nil {
			name += "-branch"
		}
		var shape strings.Builder
		shape.WriteString(name)
		for _, e := range r.Events {
			if e.Type != wire.EventOutputChunk {
				shape.WriteString(" " + string(e.Type) + "@" + e.NodeID)
			}
		}
		if len(r.Events) > maxEvents {
			continue
		}
		if shapes[shape.String()]++; shapes[shape.String()] > perShape {
			continue
		}
		shapes[name]++
		a, err := s.host.Client(key).Do(ctx, "GET", "/v1/workflows/"+rec.WorkflowID, "")
		if err != nil {
			return err
		}
		if a.Status != 200 {
			continue // a workflow of one test, deleted since
		}
		r.Workflow = a.Body
		doc, err := r.lines()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.json", name, shapes[name])), doc, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// lines writes a recording as JSON with one line per event. The event's bytes stay unchanged.
func (r *Recording) lines() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`{"workflow":`)
	if err := json.Compact(&b, r.Workflow); err != nil {
		return nil, err
	}
	b.WriteString(",\n\"record\":")
	b.Write(r.Record)
	b.WriteString(",\n\"events\":[\n")
	for i, e := range r.Events {
		if i > 0 {
			b.WriteString(",\n")
		}
		b.Write(e.AppendJSON(nil))
	}
	b.WriteString("\n]}\n")
	return b.Bytes(), nil
}

// logs reads the logs of a tenant's runs.
func (h *Host) logs(ctx context.Context, tenant, key string) (runs map[string]*Recording, order []string, err error) {
	nc, err := nats.Connect(h.NATS, nats.UserInfo(tenant, key), nats.CustomInboxPrefix(natsperm.Reader{User: tenant}.Inbox()))
	if err != nil {
		return nil, nil, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, nil, err
	}
	cons, err := js.Consumer(ctx, subject.Stream, subject.Consumer(tenant, subject.DefaultConsumer))
	if err != nil {
		return nil, nil, err
	}
	runs = map[string]*Recording{}
	for waiting := uint64(1); waiting > 0; {
		m, err := cons.Next(jetstream.FetchMaxWait(10 * time.Second))
		if err != nil {
			return nil, nil, err
		}
		if err := m.Ack(); err != nil {
			return nil, nil, err
		}
		f, err := frame.Parse(m.Subject(), m.Headers().Get, m.Data())
		if err != nil {
			return nil, nil, err
		}
		r := runs[f.Run.RunID]
		if r == nil {
			r = &Recording{}
			runs[f.Run.RunID], order = r, append(order, f.Run.RunID)
		}
		if f.Kind.Begins() {
			r.Record = f.Body
		}
		events, err := f.Events()
		if err != nil {
			return nil, nil, err
		}
		r.Events = append(r.Events, events...)
		md, err := m.Metadata()
		if err != nil {
			return nil, nil, err
		}
		waiting = md.NumPending
	}
	return runs, order, nil
}
