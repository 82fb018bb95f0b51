// Package natsmon uses NATS' monitoring to check something that clients cannot see: whether the
// servers sync every write before they acknowledge it.
package natsmon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Monitor queries servers. It is safe for concurrent use.
type Monitor struct {
	urls   []string
	client *http.Client
	log    *slog.Logger

	mu          sync.Mutex // guards the fields below, and allows one check at a time
	looked      time.Time
	found       error
	lastFailure string // last logged failure
}

const (
	// every is how long a result is cached: changing the setting requires a restart of the server.
	every = 30 * time.Second
	// timeout limits a query to one server.
	timeout = 2 * time.Second
	// maxBytes limits an answer; it usually has some kilobytes.
	maxBytes = 1 << 20
)

// New returns a monitor of the servers whose monitoring is at urls, such as
// http://nats-0.nats:8222. Failed queries are logged to log.
func New(urls []string, log *slog.Logger) *Monitor {
	return &Monitor{urls: urls, client: &http.Client{Timeout: timeout}, log: log}
}

// ErrLazy means that a server acknowledges writes that a power failure can undo.
var ErrLazy = errors.New("a NATS server does not sync every write: set sync_interval: always in its jetstream block")

// Check returns ErrLazy if a server is not as durable as required. Failed queries are logged and
// are not errors, because clients detect an unavailable server.
func (m *Monitor) Check(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Sub(m.looked) >= every { //nolint:forbidigo // plumbing
		m.looked = now
		m.look(ctx)
	}
	return m.found
}

// look queries all servers concurrently, so that a silent one does not delay the others.
func (m *Monitor) look(ctx context.Context) {
	lazy, errs := make([]bool, len(m.urls)), make([]error, len(m.urls))
	var wg sync.WaitGroup
	for i, url := range m.urls {
		wg.Go(func() { lazy[i], errs[i] = m.lazy(ctx, url) })
	}
	wg.Wait()
	m.found = nil
	var unseen []string
	for i, url := range m.urls {
		switch {
		case errs[i] != nil:
			unseen = append(unseen, errs[i].Error())
		case lazy[i]:
			m.found = fmt.Errorf("%w (%s)", ErrLazy, url)
		}
	}
	if lastFailure := strings.Join(unseen, "; "); lastFailure != m.lastFailure {
		m.lastFailure = lastFailure
		if lastFailure != "" {
			m.log.Warn("whether NATS servers sync every write cannot be seen", "error", lastFailure)
		}
	}
}

// lazy queries one server. A server without JetStream stores nothing.
func (m *Monitor) lazy(ctx context.Context, url string) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/varz", nil)
	if err != nil {
		return false, err
	}
	res, err := m.client.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return false, fmt.Errorf("%s: status %d", url, res.StatusCode)
	}
	var v struct {
		JetStream struct {
			Config *struct {
				SyncAlways bool `json:"sync_always"`
			} `json:"config"`
		} `json:"jetstream"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxBytes)).Decode(&v); err != nil {
		return false, fmt.Errorf("%s: %w", url, err)
	}
	return v.JetStream.Config != nil && !v.JetStream.Config.SyncAlways, nil
}
