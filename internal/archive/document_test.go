package archive_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/archive"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

var aRun = subject.Run{Tenant: "acme", WorkflowID: "triage", RunID: "run_1"}

// framesOf returns the log of a run with three steps.
func framesOf(run subject.Run) []*frame.Frame {
	event := func(seq int, typ wire.EventType) wire.Event {
		return wire.Event{
			EventID: fmt.Sprintf("ev_%d", seq), RunID: run.RunID, Sequence: seq, Type: typ,
			Payload: json.RawMessage(`{"text":"the content of the frame"}`), Timestamp: "2026-01-31T12:00:00.000Z",
		}
	}
	start := frame.NewStart(run, []byte(`{"runId":"`+run.RunID+`"}`))
	step := frame.New(run, subject.Step, start.Head(), []wire.Event{event(0, "run.started"), event(1, "node.started")})
	wake := frame.New(run, subject.Wake, step.Head(), nil)
	end := frame.New(run, subject.End, wake.Head(), []wire.Event{event(2, "node.completed"), event(3, "run.completed")})
	return []*frame.Frame{start, step, wake, end}
}

// bundleOf returns a bundle with n events.
func bundleOf(run subject.Run, n int) string {
	events := make([]string, n)
	for i := range events {
		events[i] = fmt.Sprintf(`{"runId":%q,"sequence":%d,"type":"node.started","payload":{"mark":"<&%d>"}}`, run.RunID, i, i)
	}
	return fmt.Sprintf(`{"bundleVersion":"1.0","run":{"runId":%q,"workflowId":%q,"status":"completed"},"events":[%s],"view":{"sequence":%d},"truncated":false}`,
		run.RunID, run.WorkflowID, strings.Join(events, ","), n-1)
}

func encoded(t *testing.T) []byte {
	t.Helper()
	doc, err := archive.Encode([]byte(bundleOf(aRun, 4)), framesOf(aRun))
	require.NoError(t, err)
	return doc
}

func TestArchive_HasTheBundleAndTheChainOfTheLog(t *testing.T) {
	t.Parallel()
	doc, frames := encoded(t), framesOf(aRun)
	require.True(t, bytes.HasPrefix(doc, []byte(strings.TrimSuffix(bundleOf(aRun, 4), "}"))), "the bundle is as it was")
	file, err := archive.Pack(doc)
	require.NoError(t, err)
	for _, in := range [][]byte{doc, file, append(bytes.Clone(doc), '\n')} {
		a, err := archive.Read(in)
		require.NoError(t, err)
		require.Equal(t, aRun, a.Run())
		require.Len(t, a.Events, 4)
		require.Len(t, a.Frames, 4)
		for i, f := range frames {
			require.Equal(t, f.Hash, a.Frames[i].Hash)
		}
		require.Equal(t, frames[3].Hash, a.Head())
		require.Equal(t, "acme/triage/run_1."+frames[3].Hash[:16]+".json.gz", a.Name())
		named, ok := archive.Named("x/y/" + a.Name())
		require.True(t, ok)
		require.Equal(t, aRun, named)
	}
	require.NotContains(t, string(doc), "the content of the frame")
}

func TestEncode_RefusesWhatIsNoWholeRun(t *testing.T) {
	t.Parallel()
	frames := framesOf(aRun)
	for name, tt := range map[string]struct {
		bundle string
		frames []*frame.Frame
		want   string
	}{
		"truncated":          {strings.Replace(bundleOf(aRun, 4), `"truncated":false`, `"truncated":true`, 1), frames, archive.ErrTruncated.Error()},
		"events are missing": {bundleOf(aRun, 3), frames, archive.ErrTruncated.Error()},
		"more events":        {bundleOf(aRun, 5), frames, "its bundle has 5 events, its log 4"},
		"it goes on":         {bundleOf(aRun, 2), frames[:2], "its last frame is step, not its end"},
		"no JSON":            {`{"run":`, frames, "debug bundle"},
		"too large":          {bundleOf(aRun, 4)[:1] + `"pad":"` + strings.Repeat("x", archive.MaxBytes) + `",` + bundleOf(aRun, 4)[1:], frames, archive.ErrTruncated.Error()},
	} {
		_, err := archive.Encode([]byte(tt.bundle), tt.frames)
		require.ErrorContains(t, err, tt.want, name)
	}
}

// The error of a changed document says which part was changed.
func TestOpen_SaysWhatIsDamagedAndWhere(t *testing.T) {
	t.Parallel()
	doc := string(encoded(t))
	frames := framesOf(aRun)
	other := aRun
	other.RunID = "run_2"
	replaced := func(old, with string) string {
		require.Contains(t, doc, old)
		return strings.Replace(doc, old, with, 1)
	}
	for name, tt := range map[string]struct{ doc, want string }{
		"an event":              {replaced(`"<&2>"`, `"<&9>"`), "archive.frames[3]: events 2 to 3 or the frame were changed"},
		"an event is missing":   {replaced(`{"runId":"run_1","sequence":1,"type":"node.started","payload":{"mark":"<&1>"}},`, ""), "events[1]: not event 1 of run run_1"},
		"the last is missing":   {replaced(`,{"runId":"run_1","sequence":3,"type":"node.started","payload":{"mark":"<&3>"}}`, ""), "archive.frames[3]: events 2 to 3, but the document has 3"},
		"an event of another":   {replaced(`{"runId":"run_1","sequence":1`, `{"runId":"run_2","sequence":1`), "events[1]: not event 1"},
		"a hash of a frame":     {replaced(frames[1].Hash, frames[2].Hash), "archive.frames[1]: events 0 to 1 or the frame were changed"},
		"a frame without event": {replaced(`"kind":"wake"`, `"kind":"step"`), "archive.frames[2]: changed"},
		"the first frame":       {replaced(`"kind":"start"`, `"kind":"step"`), `archive.frames[0]: kind "step"`},
		"the last frame":        {replaced(`"kind":"end"`, `"kind":"step"`), `archive.frames[3]: kind "step"`},
		"the order of events":   {replaced(`"first":2,"last":3`, `"first":3,"last":3`), "archive.frames[3]: events 3 to 3; event 2 is next"},
		"the tenant":            {replaced(`"tenant":"acme"`, `"tenant":"beta"`), "archive.frames[0]: changed"},
		"a tenant with a path":  {replaced(`"tenant":"acme"`, `"tenant":"../x"`), "archive: tenant, workflowId and runId"},
		"the run":               {replaced(`"run":{"runId":"run_1"`, `"run":{"runId":"run_9"`), `run: run "run_9"`},
		"the view":              {replaced(`"view":{"sequence":3}`, `"view":{"sequence":4}`), "another part of the document was changed"},
		"the status":            {replaced(`"status":"completed"`, `"status":"failed"`), "another part of the document was changed"},
		"written again":         {replaced(`"bundleVersion":"1.0"`, `"bundleVersion": "1.0"`), "another part of the document was changed"},
		"a member behind":       {strings.TrimSuffix(doc, "}") + `,"x":1}`, "archive.sha256: not the last member"},
		"another format":        {replaced(`"format":1`, `"format":2`), "archive.format: 2; this program reads 1"},
		"a debug bundle":        {bundleOf(aRun, 4), "a debug bundle without the member archive"},
		"not a run":             {`{"a":1}`, "not an archive of a run"},
		"a wrong type":          {`{"run":{},"events":3}`, "member events"},
		"no JSON":               {`hello`, "byte 1: not JSON"},
		"cut":                   {doc[:200], "truncated: it ends after 200 bytes"},
		"empty":                 {``, "the file is empty"},
	} {
		_, err := archive.Read([]byte(tt.doc))
		var damage *archive.DamagedError
		require.ErrorAs(t, err, &damage, name)
		require.ErrorContains(t, err, tt.want, name)
	}
}

// Every truncation and every flipped bit is found.
func TestRead_FindsEachCutAndFlip(t *testing.T) {
	t.Parallel()
	doc := encoded(t)
	file, err := archive.Pack(doc)
	require.NoError(t, err)
	for n := range file {
		_, err := archive.Read(file[:n])
		require.Error(t, err, "the first %d of %d bytes", n, len(file))
	}
	for n := range doc {
		_, err := archive.Open(doc[:n])
		require.Error(t, err, "the first %d of %d bytes", n, len(doc))
	}
	want, err := archive.Read(file)
	require.NoError(t, err)
	flips := func(in []byte, read func([]byte) (*archive.Archive, error)) {
		for i := range in {
			bad := bytes.Clone(in)
			bad[i] ^= 1 << rand.IntN(8) //nolint:gosec // G404: a test's choice
			got, err := read(bad)
			if err == nil { // the header of gzip has bytes without meaning
				require.Equal(t, want, got, "byte %d", i)
			}
		}
	}
	flips(file, archive.Read)
	flips(doc, archive.Open)
}

func TestRead_RefusesBombs(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	_, err := w.Write(make([]byte, archive.MaxBytes+1))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	_, err = archive.Read(bomb.Bytes())
	require.ErrorContains(t, err, "larger than 62914560 bytes")
}

func FuzzRead(f *testing.F) {
	doc, err := archive.Encode([]byte(bundleOf(aRun, 4)), framesOf(aRun))
	require.NoError(f, err)
	file, err := archive.Pack(doc)
	require.NoError(f, err)
	f.Add(doc)
	f.Add(file)
	f.Add([]byte(bundleOf(aRun, 4)))
	f.Fuzz(func(t *testing.T, in []byte) {
		a, err := archive.Read(in)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.True(t, subject.Token(a.RunID))
		again, err := archive.Open(a.Doc)
		require.NoError(t, err)
		require.Equal(t, a.Seal, again.Seal)
	})
}
