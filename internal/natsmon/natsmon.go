// Package natsmon looks over NATS' monitoring at what its clients cannot see: whether
// the servers sync every write before they acknowledge it.
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

// Monitor asks servers. It is safe for concurrent use.
type Monitor struct {
	urls   []string
	client *http.Client
	log    *slog.Logger

	mu     sync.Mutex // guards what follows, and lets one look at a time
	looked time.Time
	found  error
	told   string // what could not be seen, as it was told last
}

const (
	// every is how long what was found is believed: a server has to be started anew to
	// change it.
	every = 30 * time.Second
	// timeout bounds asking one server.
	timeout = 2 * time.Second
	// maxBytes bounds an answer; it is some kilobytes.
	maxBytes = 1 << 20
)

// New makes a monitor of the servers whose monitoring is at urls, such as
// http://nats-0.nats:8222. log is told what cannot be seen.
func New(urls []string, log *slog.Logger) *Monitor {
	return &Monitor{urls: urls, client: &http.Client{Timeout: timeout}, log: log}
}

// ErrLazy says that a server acknowledges writes that a power cut can undo.
var ErrLazy = errors.New("a NATS server does not sync every write: set sync_interval: always in its jetstream block")

// Check gives ErrLazy if a server was found that is not as durable as it should be. That
// a server cannot be asked is told in the log, and is no error: its clients see whether it
// is there.
func (m *Monitor) Check(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Sub(m.looked) >= every { //nolint:forbidigo // plumbing
		m.looked = now
		m.look(ctx)
	}
	return m.found
}

// look asks all servers at once: what is silent takes no more time than one of them.
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
	if told := strings.Join(unseen, "; "); told != m.told {
		m.told = told
		if told != "" {
			m.log.Warn("whether NATS servers sync every write cannot be seen", "error", told)
		}
	}
}

// lazy asks one server. One without JetStream keeps nothing.
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
