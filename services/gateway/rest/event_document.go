package rest

import (
	"bytes"
	"context"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/wirejson"
)

// Parameters of the polls that read a whole log.
const (
	collectPage        = 5000
	collectWaitSeconds = 1 // the shortest wait a poll accepts; it applies to live runs
)

// poll returns the events of a run after a sequence.
func (s *EventStreams) poll(ctx context.Context, runID string, after int32, opts ...grpc.CallOption) (*hostv1.PollRunEventsResponse, error) {
	return s.Host.PollRunEvents(ctx, &hostv1.PollRunEventsRequest{
		RunId:        runID,
		LastSequence: proto.Int64(int64(after)),
		Limit:        proto.Int32(collectPage),
		Timeout:      proto.Int32(collectWaitSeconds),
	}, opts...)
}

// writeDocument writes the events page by page, so that a long log needs no more memory than a
// page. The other members are those of the last page. After the first page an error cannot be
// reported: the connection is closed within the document. reached reports that a page has the last
// event of the log, as of the request.
func (s *EventStreams) writeDocument(ctx context.Context, w http.ResponseWriter, page *hostv1.PollRunEventsResponse, reached func(*hostv1.PollRunEventsResponse) bool) error {
	d := &eventDocument{w: w}
	for {
		err := d.write(ctx, page)
		if err == nil && (page.GetIsComplete() || len(page.GetEvents()) == 0 || reached(page)) {
			d.end()
			return nil
		}
		if err == nil {
			page, err = s.poll(ctx, page.GetRunId(), page.GetLastEventSeq())
		}
		switch {
		case err != nil && d.began:
			panic(http.ErrAbortHandler)
		case err != nil:
			return err
		}
	}
}

// eventDocument writes pages of events as one answer of a poll.
type eventDocument struct {
	w     http.ResponseWriter
	began bool
	some  bool   // there were events
	rest  []byte // what follows the events of the last page
}

// eventsMember is the member of a poll's answer that holds the events.
const eventsMember = `"events":[`

// pieceBytes is how much of a page is written at a time. Larger events are written from the page.
const pieceBytes = 64 << 10

// write writes the events of a page. Before the first one it fails if too many bytes are in
// flight; later it waits.
func (d *eventDocument) write(ctx context.Context, page *hostv1.PollRunEventsResponse) error {
	held, size := accountOf(ctx), int64(proto.Size(page))
	if d.began {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		if err := held.Wait(ctx, size); err != nil {
			return err
		}
	} else if err := held.Take(size); err != nil {
		return err
	}
	defer held.Close()
	doc, err := wirejson.Append(nil, &hostv1.PollRunEventsResponse{
		RunId:        page.GetRunId(),
		IsComplete:   page.GetIsComplete(),
		IsTerminal:   page.GetIsTerminal(),
		LastEventSeq: page.GetLastEventSeq(),
		RunStatus:    page.GetRunStatus(),
	})
	if err != nil {
		return err
	}
	split := bytes.Index(doc, []byte(eventsMember)) + len(eventsMember)
	piece := make([]byte, 0, min(size, pieceBytes))
	if !d.began {
		d.began = true
		d.w.Header().Set("Content-Type", "application/json")
		d.w.Header().Set("Cache-Control", "no-store")
		piece = append(piece, doc[:split]...)
	}
	d.rest = doc[split:]
	for _, e := range page.GetEvents() {
		if d.some {
			piece = append(piece, ',')
		}
		d.some = true
		if len(piece)+len(e.GetJson()) <= pieceBytes {
			piece = append(piece, e.GetJson()...)
			continue
		}
		if err := d.send(piece); err != nil {
			return err
		}
		piece = piece[:0]
		if len(e.GetJson()) < pieceBytes {
			piece = append(piece, e.GetJson()...)
		} else if err := d.send(e.GetJson()); err != nil {
			return err
		}
	}
	return d.send(piece)
}

func (d *eventDocument) send(b []byte) error {
	_, err := d.w.Write(b) //nolint:gosec // G705: JSON, and not sniffed
	return err
}

func (d *eventDocument) end() { _, _ = d.w.Write(d.rest) } // the client may have gone
