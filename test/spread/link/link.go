// Package link puts a proxy before each server of a host that is spread over processes, so
// that the way between any two of them can be cut as a network cuts it: nothing arrives, no
// connection ends, and all goes on when the way is open again.
package link

import (
	"io"
	"net"
	"strings"
	"sync"
)

// Net is the ways between named processes. All are open until they are cut.
type Net struct {
	who func(net.Conn) string

	mu  sync.Mutex // guards what follows
	cut map[pair]bool
	// changed ends when the ways change.
	changed chan struct{}
}

// pair names two processes, in the order of their names: a cut holds both ways.
type pair [2]string

func pairOf(a, b string) pair {
	if a > b {
		a, b = b, a
	}
	return pair{a, b}
}

// New makes a net; who tells which process has made a connection.
func New(who func(net.Conn) string) *Net {
	return &Net{who: who, changed: make(chan struct{})}
}

// Cut leaves all ways open but those between the pairs, which are lines of two names.
func (n *Net) Cut(lines string) {
	cut := map[pair]bool{}
	for line := range strings.Lines(lines) {
		if f := strings.Fields(line); len(f) == 2 {
			cut[pairOf(f[0], f[1])] = true
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = cut
	close(n.changed)
	n.changed = make(chan struct{})
}

// pass waits until a way is open; false: given up first.
func (n *Net) pass(p pair, given <-chan struct{}) bool {
	for {
		n.mu.Lock()
		open, changed := !n.cut[p], n.changed
		n.mu.Unlock()
		if open {
			return true
		}
		select {
		case <-changed:
		case <-given:
			return false
		}
	}
}

// Serve passes connections on to the server of a process until the listener is closed.
func (n *Net) Serve(lis net.Listener, name, addr string) {
	for {
		c, err := lis.Accept()
		if err != nil {
			return
		}
		go n.join(c, pairOf(n.who(c), name), addr)
	}
}

func (n *Net) join(c net.Conn, p pair, addr string) {
	defer func() { _ = c.Close() }()
	if !n.pass(p, nil) {
		return
	}
	s, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	ended := make(chan struct{})
	Join(gated{c, n, p, ended}, gated{s, n, p, ended}, func() {
		n.pass(p, nil) // nor does anybody learn over a cut way that the other has ended
		close(ended)
	})
}

// gated is a connection whose bytes wait while its way is cut.
type gated struct {
	net.Conn
	net   *Net
	pair  pair
	ended chan struct{}
}

func (g gated) Write(b []byte) (int, error) {
	if !g.net.pass(g.pair, g.ended) {
		return 0, net.ErrClosed
	}
	return g.Conn.Write(b)
}

// Join copies both ways until one has ended, then ends both: that a connection was broken has
// to arrive. It calls before before it ends them.
func Join(a, b net.Conn, before func()) {
	var wg sync.WaitGroup
	var once sync.Once
	end := func() {
		before()
		_, _ = a.Close(), b.Close()
	}
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		wg.Go(func() {
			// Without the shortcuts of a TCP connection, which would pass the gate by.
			_, _ = io.Copy(struct{ io.Writer }{way[0]}, struct{ io.Reader }{way[1]})
			once.Do(end)
		})
	}
	wg.Wait()
}
