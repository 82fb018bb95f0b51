package main

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports below the kernel's range for outgoing connections, so that a restarted process finds its
// port free.
const firstPort, ports = 12000, 20000

// given are the ports returned so far.
var given = map[int]bool{} //nolint:gochecknoglobals // one launcher per process

// free returns an unused address.
func free() (string, error) {
	for range ports {
		port := firstPort + rand.IntN(ports) //nolint:gosec // G404: no secret
		if given[port] {
			continue
		}
		lis, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			continue
		}
		given[port] = true
		return lis.Addr().String(), lis.Close()
	}
	return "", fmt.Errorf("no free port from %d", firstPort)
}
