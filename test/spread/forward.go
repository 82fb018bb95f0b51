package main

import (
	"net"
	"sync/atomic"

	"waybill.dev/waybill/test/spread/link"
)

// forward distributes connections over servers in turn, like a load balancer.
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

func pipe(c net.Conn, addr string) {
	defer func() { _ = c.Close() }()
	s, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	link.Join(c, s, func() {})
}
