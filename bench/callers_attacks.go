package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

func attacks() []attack {
	return []attack{
		{name: "none", p99: 100 * time.Millisecond, begin: func(context.Context, *attacked, *sync.WaitGroup) {}},
		{name: "starts", p99: 500 * time.Millisecond, bounded: true, begin: times(20, startLarge)},
		{name: "documents", p99: 500 * time.Millisecond, bounded: true, begin: times(60, readDocument)},
		{name: "anonymous", p99: 500 * time.Millisecond, bounded: true, begin: times(500, sendUnknown)},
		{name: "silent", p99: 100 * time.Millisecond, begin: together([]attack{
			{begin: times(2500, connectOnly)},
			{begin: times(2500, announceOnly)},
			{begin: times(1000, readNothing("/v1/runs/%s", "application/json"))},
			{begin: times(1000, readNothing("/v1/runs/%s/events", "text/event-stream"))},
		}).begin},
		{name: "readers", p99: 200 * time.Millisecond, begin: together([]attack{
			{begin: times(300, readRun(func(a *attacked) string { return a.waiting }))},
			{begin: times(100, readRun(func(a *attacked) string { return a.ended }))},
		}).begin},
		{name: "webhooks", p99: 500 * time.Millisecond, begin: deafWebhooks},
		{name: "grpc", p99: 100 * time.Millisecond, begin: times(16, watchHealth)},
	}
}

func attackNames() (out []string) {
	for _, a := range attacks() {
		out = append(out, a.name)
	}
	return out
}

// times runs an attacker that often, again and again until ctx ends.
func times(n int, attacker func(context.Context, *attacked)) func(context.Context, *attacked, *sync.WaitGroup) {
	return func(ctx context.Context, on *attacked, all *sync.WaitGroup) {
		for range n {
			all.Go(func() {
				for ctx.Err() == nil {
					attacker(ctx, on)
				}
			})
		}
	}
}

// again is the pause of an attacker whose connection was closed.
const again = 100 * time.Millisecond

// redial is the pause before another connection.
const redial = time.Second

// startLarge creates a run with an input of 1 MB.
func startLarge(ctx context.Context, on *attacked) {
	id, _ := chain(1)
	if _, err := on.hostile.once(ctx, http.MethodPost, "/v1/runs", largeRun(id, 1_000_000)); err != nil {
		_ = sleep(ctx, again)
	}
}

// readDocument reads a log of 8 MB as one JSON document.
func readDocument(ctx context.Context, on *attacked) {
	on.read(ctx, "/v1/runs/"+on.long+"/events", "application/json")
}

// readRun reads a run with a large input.
func readRun(of func(*attacked) string) func(context.Context, *attacked) {
	return func(ctx context.Context, on *attacked) { on.read(ctx, "/v1/runs/"+of(on), "application/json") }
}

func (a *attacked) read(ctx context.Context, path, accept string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.ready.HTTP+path, http.NoBody)
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+hostileKey)
	req.Header.Set("Accept", accept)
	res, err := a.hostile.http.Do(req)
	if err != nil {
		_ = sleep(ctx, again)
		return
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		_ = sleep(ctx, again)
	}
}

// connected sends text on a new connection, and waits until the host closes it, or ctx ends. With
// deaf it reads nothing.
func (a *attacked) connected(ctx context.Context, text string, deaf bool) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(a.ready.HTTP, "http://"))
	if err != nil {
		_ = sleep(ctx, redial)
		return
	}
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if deaf {
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10) //nolint:forcetypeassert // it was dialed so
	}
	if _, err := io.WriteString(c, text); err == nil && deaf {
		_ = sleep(ctx, deafFor)
	}
	_, _ = io.Copy(io.Discard, c)
	_ = sleep(ctx, redial)
}

// deafFor is how long a caller reads nothing: longer than the host waits.
const deafFor = 20 * time.Second

func requestText(method, path, key string, length int) string {
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n", method, path)
	if key != "" {
		text += "Authorization: Bearer " + key + "\r\n"
	}
	if length > 0 {
		text += fmt.Sprintf("Content-Length: %d\r\n", length)
	}
	return text + "\r\n"
}

// sendUnknown sends nearly all of a body of 1 MB without a credential.
func sendUnknown(ctx context.Context, on *attacked) {
	on.connected(ctx, requestText(http.MethodPost, "/v1/interrupts/"+rand.Text(), "", 1_048_570)+strings.Repeat(" ", 1_048_000), false)
}

func connectOnly(ctx context.Context, on *attacked) { on.connected(ctx, "", false) }

// announceOnly sends the headers of a start, and no body.
func announceOnly(ctx context.Context, on *attacked) {
	on.connected(ctx, requestText(http.MethodPost, "/v1/runs", hostileKey, 1_000_000), false)
}

// readNothing asks for a large answer and does not read it.
func readNothing(path, accept string) func(context.Context, *attacked) {
	return func(ctx context.Context, on *attacked) {
		text := requestText(http.MethodGet, fmt.Sprintf(path, on.waiting), hostileKey, 0)
		on.connected(ctx, strings.TrimSuffix(text, "\r\n")+"Accept: "+accept+"\r\n\r\n", true)
	}
}

// deafWebhooks registers a hundred webhooks that are never answered, and starts runs.
func deafWebhooks(ctx context.Context, on *attacked, all *sync.WaitGroup) {
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return
	}
	all.Go(func() {
		<-ctx.Done()
		_ = lis.Close()
	})
	all.Go(func() {
		var open []net.Conn
		defer func() {
			for _, c := range open {
				_ = c.Close()
			}
		}()
		for {
			c, err := lis.Accept()
			if err != nil {
				return
			}
			open = append(open, c)
		}
	})
	id, _ := chain(1)
	body := []byte(`{"workflowId":"` + id + `"}`)
	all.Go(func() {
		for i := range 100 {
			_, _ = on.hostile.do(ctx, http.MethodPost, "/v1/webhooks", fmt.Appendf(nil, `{"url":"http://%s/%d","events":["run.started","node.started","node.completed","run.completed"]}`, lis.Addr(), i))
		}
		for ctx.Err() == nil {
			_, _ = on.hostile.once(ctx, http.MethodPost, "/v1/runs", body)
			_ = sleep(ctx, again)
		}
	})
}

// watchHealth opens as many health watches on a connection as the host allows, and keeps them.
func watchHealth(ctx context.Context, on *attacked) {
	conn, err := grpc.NewClient(on.ready.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, deafFor)
	defer cancel()
	for range 1000 {
		if _, err := healthv1.NewHealthClient(conn).Watch(ctx, &healthv1.HealthCheckRequest{}); err != nil {
			break
		}
	}
	_ = sleep(ctx, deafFor)
}

// inbox is a receiver of webhooks.
type inbox struct {
	server *httptest.Server
	url    string

	mu      sync.Mutex
	asked   map[string]time.Time // when runs were requested
	arrived map[string]time.Time
}

func newInbox(context.Context) (*inbox, error) {
	b := &inbox{asked: map[string]time.Time{}, arrived: map[string]time.Time{}}
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var event struct{ RunID string }
		if json.NewDecoder(r.Body).Decode(&event) == nil {
			b.mu.Lock()
			if _, known := b.arrived[event.RunID]; !known {
				b.arrived[event.RunID] = time.Now()
			}
			b.mu.Unlock()
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	b.url = b.server.URL
	return b, nil
}

func (b *inbox) close() { b.server.Close() }

func (b *inbox) expect(runID string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked[runID] = at
}

// delays are the times from requests to deliveries.
func (b *inbox) delays() (out samples) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for run, at := range b.arrived {
		if asked, ok := b.asked[run]; ok {
			out = append(out, at.Sub(asked))
		}
	}
	return out.sorted()
}
