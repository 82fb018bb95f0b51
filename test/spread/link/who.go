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
	inode := socketOf(c)
	for range tableReads - 1 {
		if inode != "" {
			break
		}
		inode = socketOf(c)
	}
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

// tableReads is how often the kernel's list is read for a socket: while others come and go, a
// reader misses some of those that stay.
const tableReads = 50

// socketOf is the inode of the socket at the other end of a connection; empty: it has gone.
// Both addresses count: an earlier connection from the same port may still be listed.
func socketOf(c net.Conn) string {
	from, to := listed(c.RemoteAddr()), listed(c.LocalAddr())
	f, err := os.Open("/proc/net/tcp")
	if err != nil || from == "" || to == "" {
		return ""
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		if cols := strings.Fields(s.Text()); len(cols) > 9 && cols[1] == from && cols[2] == to {
			return cols[9]
		}
	}
	return ""
}

// listed is an address as the kernel lists it; empty: it is none of IPv4.
func listed(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.To4() == nil {
		return ""
	}
	ip := tcp.IP.To4()
	return fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], tcp.Port)
}
