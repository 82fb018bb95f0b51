// Package link puts a proxy before each process of a spread host, so that the link between any two
// of them can be cut as a network cuts it: no bytes arrive, no connection ends, and everything
// continues when the link is open again.
package link

import (
	"io"
	"net"
	"strings"
	"sync"
)

// Net is the set of links between named processes. All are open at first.
type Net struct {
	who func(net.Conn) string

	mu  sync.Mutex // guards the fields below
	cut map[pair]bool
	// changed is closed when the cuts change.
	changed chan struct{}
}

// pair names two processes in alphabetical order: a cut affects both directions.
type pair [2]string

func pairOf(a, b string) pair {
	if a > b {
		a, b = b, a
	}
	return pair{a, b}
}

// New returns a net. who returns the process that made a connection.
func New(who func(net.Conn) string) *Net {
	return &Net{who: who, changed: make(chan struct{})}
}

// Cut replaces the cuts. Each line names two processes.
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

// pass waits until a link is open. It returns false if given closes first.
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

// Serve forwards connections to the server of a process until the listener is closed.
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
		n.pass(p, nil) // the end of a connection does not pass a cut link either
		close(ended)
	})
}

// gated is a connection whose bytes wait while its link is cut.
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

// Join copies both ways until one side ends, then closes both, because a broken connection must
// arrive. It calls before before closing.
func Join(a, b net.Conn, before func()) {
	var wg sync.WaitGroup
	var once sync.Once
	end := func() {
		before()
		_, _ = a.Close(), b.Close()
	}
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		wg.Go(func() {
			// Without the optimizations of a TCP connection, which bypass the gate.
			_, _ = io.Copy(struct{ io.Writer }{way[0]}, struct{ io.Reader }{way[1]})
			once.Do(end)
		})
	}
	wg.Wait()
}
