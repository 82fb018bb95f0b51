package rest

import (
	"bytes"
	"context"
	"net/http"

	"google.golang.org/protobuf/proto"

	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/wirejson"
)

// Parameters of the polls that read a whole log.
const (
	collectPage        = 5000
	collectWaitSeconds = 1 // the shortest wait a poll accepts; it applies to live runs
)

// writeDocument writes the events page by page, so that a long log needs no more memory than a
// page. The other members are those of the last page. After the first page an error cannot be
// reported: the connection is closed within the document. reached reports that a page has the last
// event of the log, as of the request.
func (s *EventStreams) writeDocument(ctx context.Context, w http.ResponseWriter, runID string, reached func(*hostv1.PollRunEventsResponse) bool) error {
	d := &eventDocument{w: w}
	for cursor := int32(-1); ; {
		page, err := s.Host.PollRunEvents(ctx, &hostv1.PollRunEventsRequest{
			RunId:        runID,
			LastSequence: proto.Int64(int64(cursor)),
			Limit:        proto.Int32(collectPage),
			Timeout:      proto.Int32(collectWaitSeconds),
		})
		if err == nil {
			err = d.write(ctx, page)
		}
		switch {
		case err != nil && d.began:
			panic(http.ErrAbortHandler)
		case err != nil:
			return err
		case page.GetIsComplete() || len(page.GetEvents()) == 0 || reached(page):
			d.end()
			return nil
		}
		cursor = page.GetLastEventSeq()
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

// write writes the events of a page. Before the first one it fails if too many bytes are in
// flight; later it waits.
func (d *eventDocument) write(ctx context.Context, page *hostv1.PollRunEventsResponse) error {
	held, size := accountOf(ctx), int64(2*proto.Size(page)) // the page and its JSON
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
	body := make([]byte, 0, size/2)
	if !d.began {
		d.began = true
		d.w.Header().Set("Content-Type", "application/json")
		d.w.Header().Set("Cache-Control", "no-store")
		body = append(body, doc[:split]...)
	}
	d.rest = doc[split:]
	for _, e := range page.GetEvents() {
		if d.some {
			body = append(body, ',')
		}
		d.some = true
		body = append(body, e.GetJson()...)
	}
	_, err = d.w.Write(body) //nolint:gosec // G705: JSON, and not sniffed
	return err
}

func (d *eventDocument) end() { _, _ = d.w.Write(d.rest) } // the client may have gone
