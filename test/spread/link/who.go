package link

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// Owner finds the process that made a connection to this machine. The kernel lists the addresses of
// sockets, and the sockets of each process. So all callers can use the same addresses, by which they
// choose among replicas.
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

// tableReads is how often the kernel's list is read for a socket. While sockets are opened and
// closed, a read can miss others.
const tableReads = 50

// socketOf returns the inode of the socket at the other end of a connection; empty if it is closed.
// It compares both addresses: an earlier connection from the same port may still be listed.
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

// listed formats an address as the kernel does; empty if it is not IPv4.
func listed(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.To4() == nil {
		return ""
	}
	ip := tcp.IP.To4()
	return fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], tcp.Port)
}
