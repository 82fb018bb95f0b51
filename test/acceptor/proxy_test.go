package acceptor

import (
	"bytes"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between an acceptor and its NATS server, and can keep what the
// server says to itself: the server has done what was asked, and nobody hears.
type proxy struct {
	lis    net.Listener
	server string
	wg     sync.WaitGroup

	mu      sync.Mutex // guards what follows
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

// muteAtAppend keeps the server quiet from the next append on; the append itself
// reaches it.
func (p *proxy) muteAtAppend() { p.set(func() { p.armed = true }) }

// muteNow keeps the server quiet at once.
func (p *proxy) muteNow() { p.set(func() { p.mute = true }) }

// speak lets the server be heard again.
func (p *proxy) speak() { p.set(func() { p.armed, p.mute = false, false }) }

func (p *proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

// cut closes all connections. What was kept back is lost.
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

// appends begins the publication of a frame.
var appends = []byte("HPUB openwop.events.")

// watch looks for an append in what a client sends, and gives what the next piece
// may continue.
func (p *proxy) watch(b []byte) []byte {
	if bytes.Contains(b, appends) {
		p.set(func() { p.mute = p.mute || p.armed })
	}
	return bytes.Clone(b[max(0, len(b)-len(appends)+1):])
}

// hold waits while the server is kept quiet.
func (p *proxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.mute {
		p.changed.Wait()
	}
}

// pump hands on from one side to the other until one of them ends. before sees
// each piece first.
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
