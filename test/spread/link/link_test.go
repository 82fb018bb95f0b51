package link_test

import (
	"bufio"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/spread/link"
)

// echo is a server that returns each line.
func echo(t *testing.T) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = lis.Close() })
	go func() {
		for {
			c, err := lis.Accept()
			if err != nil {
				return
			}
			go link.Join(c, c, func() {})
		}
	}()
	return lis.Addr().String()
}

func TestNet_HoldsBytesOfACutLinkAndClosesNothing(t *testing.T) {
	t.Parallel()
	n := link.New(func(c net.Conn) string { return link.Owner(c, map[string]int{"a": os.Getpid()}) })
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = lis.Close() })
	go n.Serve(lis, "b", echo(t))
	c, err := net.Dial("tcp", lis.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	heard := make(chan string)
	go func() {
		for s := bufio.NewScanner(c); s.Scan(); {
			heard <- s.Text()
		}
	}()
	say := func(line string) {
		_, err := c.Write([]byte(line + "\n"))
		require.NoError(t, err)
	}
	say("open")
	require.Equal(t, "open", <-heard)

	n.Cut("b a\n")
	say("cut")
	select {
	case line := <-heard:
		require.Fail(t, "it came through", line)
	case <-time.After(50 * time.Millisecond):
	}
	n.Cut("a c\n") // another link
	require.Equal(t, "cut", <-heard)
}

func TestOwner_FindsOnlyListedProcesses(t *testing.T) {
	t.Parallel()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = lis.Close() })
	out, err := net.Dial("tcp", lis.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = out.Close() })
	in, err := lis.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = in.Close() })
	require.Equal(t, "us", link.Owner(in, map[string]int{"us": os.Getpid(), "init": 1}))
	require.Empty(t, link.Owner(in, map[string]int{"init": 1}))
}
