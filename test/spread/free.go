package main

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports below those that the kernel gives to outgoing connections: a process that is
// started again finds its own free.
const firstPort, ports = 12000, 20000

// given are those that this launcher has handed out.
var given = map[int]bool{} //nolint:gochecknoglobals // one launcher a process

// free is an address that nobody has.
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
