package mcp

import (
	"context"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// recordEvery is the least time between two recorded reports of a call.
const recordEvery = 5 * time.Second

// report is a server's report of progress.
type report struct {
	Reason   string   `json:"reason"`
	Progress float64  `json:"progress"`
	Total    *float64 `json:"total,omitempty"`
}

// calls passes reports of progress to the calls that they belong to, by token.
type calls struct {
	mu   sync.Mutex // guards all below
	last uint64
	open map[string]*call
}

// call is one call in flight.
type call struct {
	timer *time.Timer
	limit time.Duration
	news  chan report // the latest report; capacity 1

	mu       sync.Mutex // guards progress
	progress float64
}

// begin returns a context for a call, which ends after limit without progress, and at the latest
// after tool.MaxTimeout. The caller must call end.
func (c *calls) begin(ctx context.Context, limit time.Duration) (_ context.Context, _ *call, token string, end func()) {
	ctx, stop := context.WithTimeout(ctx, tool.MaxTimeout)
	ctx, cancel := context.WithCancelCause(ctx)
	one := &call{limit: limit, news: make(chan report, 1), progress: math.Inf(-1)}
	one.timer = time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[string]*call{}
	}
	c.last++
	token = strconv.FormatUint(c.last, 10)
	c.open[token] = one
	return ctx, one, token, func() {
		c.mu.Lock()
		delete(c.open, token)
		c.mu.Unlock()
		one.timer.Stop()
		cancel(nil)
		stop()
	}
}

// notify passes on a report. It does not block.
func (c *calls) notify(p *mcp.ProgressNotificationParams) {
	token, _ := p.ProgressToken.(string)
	if n, ok := p.ProgressToken.(float64); ok { // of a server that reads digits as a number
		token = strconv.FormatFloat(n, 'f', -1, 64)
	}
	c.mu.Lock()
	one := c.open[token]
	c.mu.Unlock()
	if one != nil {
		one.report(p)
	}
}

// report postpones the end of the call. A report that does not increase is none.
func (c *call) report(p *mcp.ProgressNotificationParams) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.Progress <= c.progress {
		return
	}
	c.progress = p.Progress
	c.timer.Reset(c.limit)
	next := report{Reason: wire.ReasonToolProgress, Progress: p.Progress}
	if p.Total > 0 {
		next.Total = &p.Total
	}
	select {
	case <-c.news: // only the latest counts
	default:
	}
	c.news <- next
}

// logPayload is the payload of a log.appended event.
type logPayload struct {
	Level   string `json:"level"`
	Message string `json:"message"`
	NodeID  string `json:"nodeId"`
	Fields  any    `json:"fields"`
}

// watch records the reports of a call until the returned function is called. A nil journal disables
// it.
func (c *call) watch(ctx context.Context, nodeID string, j model.Journal) (stop func()) {
	if j == nil {
		return func() {}
	}
	done := make(chan struct{})
	var recording sync.WaitGroup
	recording.Go(func() { c.record(ctx, done, nodeID, j) })
	return sync.OnceFunc(func() {
		close(done)
		recording.Wait()
	})
}

// record records the reports of a call until done is closed: the first one, then the latest of each
// period. The events repeat no words of the server.
func (c *call) record(ctx context.Context, done <-chan struct{}, nodeID string, j model.Journal) {
	for {
		select {
		case <-done:
			return
		case r := <-c.news:
			if j.Record(ctx, logDraft(nodeID, "info", "the tool reports progress", r)) != nil {
				return // the call ends for the same reason
			}
		}
		pause := time.NewTimer(recordEvery)
		select {
		case <-done:
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// logDraft returns a log.appended event.
func logDraft(nodeID, level, message string, fields any) wire.Draft {
	return wire.Draft{
		Type: wire.EventLogAppended, NodeID: nodeID, Trust: wire.Untrusted,
		Payload: strictjson.Render(logPayload{Level: level, Message: message, NodeID: nodeID, Fields: fields}),
	}
}
