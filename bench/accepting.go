package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"waybill.dev/waybill/internal/rpc"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/accept/accepttest"
)

// writers is the number of concurrent callers.
const writers = 64

// acceptorHost is a `waybill serve acceptor` process with its embedded JetStream server and the
// fsync before every acknowledgement that production has.
type acceptorHost struct {
	*host
	conns []*grpc.ClientConn
	// idle callers
	callers chan *caller
	// taken counts accepted envelopes.
	taken atomic.Int64
}

func serveAcceptor(ctx context.Context, o options) (*acceptorHost, error) {
	kindsDir, err := os.MkdirTemp(o.dir, "kinds")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(kindsDir) }() // read once, at the start
	if err := os.WriteFile(filepath.Join(kindsDir, accepttest.Kind+".schema.json"), []byte(accepttest.Schema), 0o600); err != nil {
		return nil, err
	}
	h, err := startAcceptor(ctx, o.bin, o.dir, "--kinds", kindsDir)
	if err != nil {
		return nil, err
	}
	a := &acceptorHost{host: h, callers: make(chan *caller, writers)}
	for range 4 {
		conn, err := grpc.NewClient(h.ready.GRPC, append(rpc.ClientOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		if err != nil {
			a.stop()
			return nil, err
		}
		a.conns = append(a.conns, conn)
	}
	for i := range writers {
		a.callers <- &caller{client: acceptorv1.NewAcceptorClient(a.conns[i%len(a.conns)]), name: fmt.Sprintf("w%d", i)}
	}
	return a, nil
}

func (a *acceptorHost) stop() {
	for _, c := range a.conns {
		_ = c.Close()
	}
	a.host.stop()
}

// accept sends one envelope with an idle caller.
func (a *acceptorHost) accept(ctx context.Context) error {
	c := <-a.callers
	defer func() { a.callers <- c }()
	if err := c.accept(ctx); err != nil {
		return err
	}
	a.taken.Add(1)
	return nil
}

// caller sends envelopes in sequence, with a new run after every perRun of them.
type caller struct {
	client acceptorv1.AcceptorClient
	name   string
	n      int
}

func (c *caller) accept(ctx context.Context) error {
	run := &runlogv1.RunRef{Tenant: "default", WorkflowId: "bench", RunId: fmt.Sprintf("%s-%d", c.name, c.n/perRun)}
	if c.n%perRun == 0 {
		if _, err := c.client.OpenRun(ctx, &acceptorv1.OpenRunRequest{Run: run, NoSecrets: true}); err != nil {
			return err
		}
	}
	res, err := c.client.Accept(ctx, &acceptorv1.AcceptRequest{
		Run: run, NodeId: "ask", Envelope: accepttest.Envelope(fmt.Sprintf("corr-%04d", c.n%perRun)),
	})
	if err != nil {
		return err
	}
	if accept.StatusOf(res.GetOutcome()) != accept.Accepted {
		return fmt.Errorf("the envelope was not accepted: %s", res.GetOutcome())
	}
	c.n++
	return nil
}
