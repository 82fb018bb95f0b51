package notify

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"waybill.dev/waybill/protocol/subject"
)

// Direct sends short requests to one process by its id. It is safe for concurrent use.
type Direct struct {
	nc     *nats.Conn
	prefix string

	mu  sync.Mutex // guards sub
	sub *nats.Subscription
}

// NewDirect returns a Direct for requests of one kind; name is the same in all processes.
func NewDirect(nc *nats.Conn, name string) *Direct {
	return &Direct{nc: nc, prefix: "waybill.notify." + name + "."}
}

// Serve answers the requests to a process with the results of handle. It replaces the process that
// was served before.
func (d *Direct) Serve(process string, handle func(data []byte) []byte) error {
	if !subject.Token(process) {
		return fmt.Errorf("notify: process %q: want letters, digits, _ and -", process)
	}
	sub, err := d.nc.Subscribe(d.prefix+process, func(m *nats.Msg) {
		_ = m.Respond(handle(m.Data)) // a lost answer is like a lost request: the caller retries
	})
	if err != nil {
		return fmt.Errorf("notify: serve %s: %w", process, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sub != nil {
		_ = d.sub.Unsubscribe() // it ends with the connection anyway
	}
	d.sub = sub
	return nil
}

// Ask sends a request to a process and returns its answer. It fails immediately if no process with
// that id is subscribed.
func (d *Direct) Ask(ctx context.Context, process string, data []byte) ([]byte, error) {
	m, err := d.nc.RequestWithContext(ctx, d.prefix+process, data)
	if err != nil {
		return nil, fmt.Errorf("notify: ask %s: %w", process, err)
	}
	return m.Data, nil
}

// Close ends the subscription; the connection is its owner's.
func (d *Direct) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sub != nil {
		_ = d.sub.Unsubscribe() // it ends with the connection anyway
	}
}
