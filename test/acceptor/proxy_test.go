package acceptor

import (
	"bytes"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy forwards between an acceptor and its NATS server. It can withhold the server's answers, so that
// a request takes effect without an acknowledgement.
type proxy struct {
	lis    net.Listener
	server string
	wg     sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	changed *sync.Cond
	armed   bool
	mute    bool
	closed  bool
	conns   []net.Conn
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{lis: lis, server: server}
	p.changed = sync.NewCond(&p.mu)
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = lis.Close()
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.speak()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.lis.Addr().String() }

// muteAtAppend withholds the server's answers from the next append on. The append itself reaches
// the server.
func (p *proxy) muteAtAppend() { p.set(func() { p.armed = true }) }

// muteNow withholds the server's answers immediately.
func (p *proxy) muteNow() { p.set(func() { p.mute = true }) }

// speak stops withholding.
func (p *proxy) speak() { p.set(func() { p.armed, p.mute = false, false }) }

func (p *proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

// cut closes all connections. Withheld answers are lost.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *proxy) accept() {
	for {
		client, err := p.lis.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		if p.closed {
			_, _ = client.Close(), server.Close()
		}
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		var tail []byte
		p.wg.Go(func() {
			pump(client, server, func(b []byte) { tail = p.watch(append(tail, b...)) })
		})
		p.wg.Go(func() { pump(server, client, func([]byte) { p.hold() }) })
	}
}

// appends is the start of a frame's publication.
var appends = []byte("HPUB openwop.events.")

// watch looks for an append in a client's bytes. It returns the end of the bytes, which the next
// piece may continue.
func (p *proxy) watch(b []byte) []byte {
	if bytes.Contains(b, appends) {
		p.set(func() { p.mute = p.mute || p.armed })
	}
	return bytes.Clone(b[max(0, len(b)-len(appends)+1):])
}

// hold waits while answers are withheld.
func (p *proxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.mute {
		p.changed.Wait()
	}
}

// pump forwards bytes from one side to the other until one ends. before gets each piece first.
func pump(from, to net.Conn, before func([]byte)) {
	defer func() { _, _ = from.Close(), to.Close() }()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			before(b[:n])
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
