package main

import (
	"io"
	"net"
	"sync/atomic"
)

// forward hands connections to servers in turn, as a load balancer does.
func forward(lis net.Listener, to []string) {
	var turn atomic.Uint64
	for {
		c, err := lis.Accept()
		if err != nil {
			return
		}
		go pipe(c, to[turn.Add(1)%uint64(len(to))])
	}
}

// pipe ends both ways when one has ended: tests cut connections, and that has to arrive.
func pipe(c net.Conn, addr string) {
	defer func() { _ = c.Close() }()
	s, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer func() { _ = s.Close() }()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{c, s}, {s, c}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
}
