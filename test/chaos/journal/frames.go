package journal

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Frames reads the whole log from a NATS server, by run.
func Frames(t testing.TB, url string) (logs map[string][]*frame.Frame) {
	t.Helper()
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	defer nc.Close()
	api, err := js.New(nc)
	require.NoError(t, err)
	for deadline := time.Now().Add(endTimeout); ; { // its leader may just have changed
		if logs, err = readLog(t.Context(), api); err == nil || time.Now().After(deadline) {
			break
		}
	}
	require.NoError(t, err)
	return logs
}

func readLog(ctx context.Context, api js.JetStream) (map[string][]*frame.Frame, error) {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	stream, err := api.Stream(ctx, subject.Stream)
	if err != nil {
		return nil, err
	}
	cons, err := stream.OrderedConsumer(ctx, js.OrderedConsumerConfig{FilterSubjects: []string{subject.All}})
	if err != nil {
		return nil, err
	}
	msgs, err := cons.Messages()
	if err != nil {
		return nil, err
	}
	defer msgs.Stop()
	out, before := map[string][]*frame.Frame{}, uint64(0)
	for left := stream.CachedInfo().State.Msgs; left > 0; left-- {
		m, err := next(ctx, msgs)
		if err != nil {
			return nil, err
		}
		f, err := frame.Parse(m.Subject(), m.Headers().Get, m.Data())
		if err != nil {
			return nil, err
		}
		meta, err := m.Metadata()
		if err != nil {
			return nil, err
		}
		f.Pos, f.Stored = meta.Sequence.Stream, meta.Timestamp
		if f.Pos != before+1 { // the server has lost records
			return nil, fmt.Errorf("record %d is missing", before+1)
		}
		before = f.Pos
		out[f.Run.RunID] = append(out[f.Run.RunID], f)
	}
	return out, nil
}

// next waits for a message as long as a healthy server needs. A server with a damaged file may
// never answer; another one is tried then.
func next(ctx context.Context, msgs js.MessagesContext) (js.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return msgs.Next(js.NextContext(ctx))
}

// CheckFrames checks the log itself: the frames of each run are a chain, and no former owner wrote
// after another took the run over.
func (j *Journal) CheckFrames(t testing.TB, logs map[string][]*frame.Frame) {
	t.Helper()
	for run, workflow := range j.Runs() {
		frames := logs[run]
		if !assert.NotEmpty(t, frames, "run %s is in the log", run) {
			continue
		}
		if err := frame.VerifyChain(frames); err != nil {
			t.Errorf("run %s: %v", run, err)
		}
		if workflow != GateWorkflow { // clients write to these runs as well
			assert.Empty(t, late(frames), "run %s: owners that wrote after another", run)
		}
	}
}

// late returns the writers of a run that wrote again after another owner had. Only an owner's frames
// count: the acceptor writes on the owner's behalf, and any dispatcher may add a wake frame.
func late(frames []*frame.Frame) (out []string) {
	gone, owner := map[string]bool{}, ""
	for _, f := range frames {
		if f.Writer == owner || (frame.Ownership{}).After(f) == (frame.Ownership{}) {
			continue
		}
		if gone[f.Writer] {
			out = append(out, f.Writer)
		}
		gone[owner], owner = true, f.Writer
	}
	return out
}
