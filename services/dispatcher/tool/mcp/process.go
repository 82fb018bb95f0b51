package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"waybill.dev/waybill/services/dispatcher/tool"
	"waybill.dev/waybill/services/dispatcher/tool/outbound"
)

// process starts a program and exchanges messages over its standard input and output, one per line.
type process struct {
	argv, env []string
}

// Connect starts the program; it outlives ctx and ends with the connection.
func (p process) Connect(ctx context.Context) (mcp.Connection, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), p.argv[0], p.argv[1:]...) //nolint:gosec // G204: the operator names the program
	cmd.Env = p.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its children end with it
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	// Its standard error is dropped, because it may contain anything.
	pipes := mcp.IOTransport{
		Reader:        io.NopCloser(&lines{r: stdout, max: tool.MaxResultBytes}),
		Writer:        stdin,
		MaxLineLength: -1,
	}
	conn, err := pipes.Connect(ctx)
	if err != nil {
		_ = stdin.Close()
		_ = kill(cmd)
		return nil, errors.Join(err, cmd.Wait())
	}
	return &child{Connection: conn, cmd: cmd}, nil
}

// child is the connection to a program.
type child struct {
	mcp.Connection

	cmd  *exec.Cmd
	once sync.Once
}

// grace is how long a program may take to end after its input was closed.
const grace = time.Second

// Close ends the program and waits for it.
func (c *child) Close() error {
	err := c.Connection.Close() // closes its input
	c.once.Do(func() {
		gone := make(chan struct{})
		go func() {
			_ = c.cmd.Wait() // its exit status does not matter
			close(gone)
		}()
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-gone:
		case <-t.C:
		}
		_ = kill(c.cmd) // including its children
		<-gone
	})
	return err
}

// lines limits the length of lines, because the library's own limit cannot be distinguished from
// other failures.
type lines struct {
	r    io.Reader
	max  int
	line int // bytes of the line so far
}

// Read fails with outbound.ErrTooLarge in a line that is too long.
func (l *lines) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if i := bytes.LastIndexByte(p[:n], '\n'); i >= 0 {
		l.line = n - i - 1 // a line that ended within p was at most as long as l.max and p
	} else {
		l.line += n
	}
	if l.line > l.max {
		return 0, outbound.ErrTooLarge
	}
	return n, err
}

func kill(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
