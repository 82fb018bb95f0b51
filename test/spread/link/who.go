package link

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// Owner tells which of some processes has made a connection to this machine: the kernel
// lists a socket by its address, and each process its sockets. Addresses so can be the same
// for all callers, by which they choose among replicas.
func Owner(c net.Conn, pids map[string]int) string {
	inode := socketOf(c.RemoteAddr())
	for name, pid := range pids {
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err == nil && inode != "" && to == "socket:["+inode+"]" {
				return name
			}
		}
	}
	return ""
}

// socketOf is the inode of the socket at a local address; empty: it has gone.
func socketOf(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.To4() == nil {
		return ""
	}
	ip := tcp.IP.To4()
	want := fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], tcp.Port)
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		if cols := strings.Fields(s.Text()); len(cols) > 9 && cols[1] == want {
			return cols[9]
		}
	}
	return ""
}
