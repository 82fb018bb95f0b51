package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"waybill.dev/waybill/internal/version"
	"waybill.dev/waybill/services/dispatcher/callguard"
	"waybill.dev/waybill/services/dispatcher/tool"
	"waybill.dev/waybill/services/dispatcher/tool/outbound"
)

// errUnsent marks the error of a call that was not sent.
var errUnsent = errors.New("not connected")

var errClosed = errors.New("the host is shutting down")

// server is one MCP server. All calls share one session, which is opened by the first call and
// reopened after it was lost.
type server struct {
	cfg    Config
	client *mcp.Client
	http   *http.Client // nil for a command

	connecting chan struct{} // held while connecting
	calls      calls
	// listless is set if the server's list of tools is too large.
	listless atomic.Bool

	mu         sync.Mutex // guards all below
	live       *session   // nil if not connected
	closed     bool
	background sync.WaitGroup
}

// session is a shared connection. A stale session serves its current calls and is closed after the
// last of them.
type session struct {
	*mcp.ClientSession

	definitions *definitions

	users int
	stale bool
}

// gone reports whether the server does not know the session of a failed request any more.
func (s *session) gone(err error, n *outbound.Note) bool {
	return err != nil && s.ID() != "" && (n.Status() == http.StatusNotFound || n.Status() == http.StatusBadRequest)
}

func newServer(c Config) *server {
	s := &server{cfg: c, connecting: make(chan struct{}, 1)}
	s.client = mcp.NewClient(&mcp.Implementation{Name: version.Name, Version: version.Version}, &mcp.ClientOptions{
		Logger: slog.New(slog.DiscardHandler), // its output could contain text of servers
		// The host offers servers no roots, sampling or elicitation.
		Capabilities:   &mcp.ClientCapabilities{},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			s.calls.notify(r.Params)
		},
	})
	s.client.AddReceivingMiddleware(s.watchChanges)
	if c.URL != nil {
		s.http = outbound.New(outbound.Config{Base: c.URL, Token: c.Token, MaxBytes: tool.MaxResultBytes})
	}
	return s
}

// watchChanges makes the next call read the list of tools again if the server says that it changed.
func (s *server) watchChanges(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		if method == "notifications/tools/list_changed" {
			s.mu.Lock()
			if s.live != nil {
				s.live.definitions.changed()
			}
			s.mu.Unlock()
		}
		return next(ctx, method, r)
	}
}

func (s *server) transport(version *negotiated) mcp.Transport {
	if s.http == nil {
		return keeping{process{argv: s.cfg.Command, env: s.cfg.Env}, version}
	}
	client := *s.http
	client.Transport = versioned{s.http.Transport, version}
	return keeping{&mcp.StreamableClientTransport{
		Endpoint: s.cfg.URL.String(), HTTPClient: &client, DisableStandaloneSSE: true,
		// Beyond the limit of a line, which ends a call only: this one ends the session.
		MaxEventSize: 2 * tool.MaxResultBytes,
	}, version}
}

// call calls one tool. A session that the server no longer knows is replaced once: a call rejected
// for that reason was not executed.
func (s *server) call(ctx context.Context, p *mcp.CallToolParams, n *outbound.Note) (*answer, error) {
	if err := callguard.Check(ctx); err != nil {
		return nil, err
	}
	for again := true; ; again = false {
		sess, err := s.acquire(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUnsent, err)
		}
		got, gone, err := s.callWithin(ctx, sess, p, n, again)
		s.release(sess, gone || s.sessionBroken(ctx, err))
		if !gone || !again {
			return got, err
		}
	}
}

// callWithin calls a tool in a session. gone means that the call was not executed because the
// session is lost. Without listed, a tool is called even if the server cannot list it.
func (s *server) callWithin(
	ctx context.Context, sess *session, p *mcp.CallToolParams, n *outbound.Note, listed bool,
) (_ *answer, gone bool, _ error) {
	out, fresh, err := s.outputOf(ctx, sess, p.Name, false)
	if err != nil && (listed || ctx.Err() != nil) {
		return nil, ctx.Err() == nil, fmt.Errorf("%w: %w", errUnsent, err)
	}
	if err := callguard.Begin(ctx); err != nil {
		return nil, false, fmt.Errorf("%w: %w", errUnsent, err)
	}
	res, err := sess.CallTool(ctx, p)
	if err != nil {
		return nil, sess.gone(err, n), err
	}
	got, err := newAnswer(res)
	if err != nil {
		return nil, false, err
	}
	got.output = out
	if out.violation(got.result) != "" && !fresh { // the tool may have changed since
		if again, _, err := s.outputOf(ctx, sess, p.Name, true); err == nil {
			got.output = again
		}
	}
	return got, false, nil
}

// sessionBroken reports whether a session is unusable. A program that did not answer has ended, or
// writes invalid output.
func (s *server) sessionBroken(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil || errors.Is(err, errNoResult) {
		return false
	}
	_, answered := errors.AsType[*jsonrpc.Error](err)
	return errors.Is(err, mcp.ErrConnectionClosed) || s.http == nil && !answered
}

// acquire returns the live session, connecting if there is none.
func (s *server) acquire(ctx context.Context) (*session, error) {
	select {
	case s.connecting <- struct{}{}:
		defer func() { <-s.connecting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	sess, closed := s.live, s.closed
	if sess != nil {
		sess.users++
	}
	s.mu.Unlock()
	if sess != nil || closed {
		return sess, errIf(closed)
	}
	connectCtx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	version := &negotiated{}
	cs, err := s.client.Connect(connectCtx, s.transport(version), nil)
	if err != nil {
		return nil, err
	}
	version.set(cs.InitializeResult().ProtocolVersion)
	return s.setSession(&session{ClientSession: cs, definitions: newDefinitions(), users: 1})
}

func errIf(closed bool) error {
	if closed {
		return errClosed
	}
	return nil
}

// setSession makes a session the live one and watches it.
func (s *server) setSession(sess *session) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.background.Go(func() { _ = sess.Close() })
		return nil, errClosed
	}
	s.live = sess
	s.background.Go(func() {
		_ = sess.Wait() // returns after it was lost or closed
		s.dropSession(sess)
		_ = sess.Close() // also ends its program
	})
	return sess, nil
}

func (s *server) dropSession(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == sess {
		s.live = nil
	}
}

// release ends a use of a session.
func (s *server) release(sess *session, stale bool) {
	s.mu.Lock()
	sess.users--
	sess.stale = sess.stale || stale
	if sess.stale && s.live == sess {
		s.live = nil
	}
	over := sess.stale && sess.users == 0
	s.mu.Unlock()
	if over {
		s.background.Go(func() { _ = sess.Close() }) // in the background: the server may be slow
	}
}

// close ends the session and its program.
func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	sess := s.live
	s.live = nil
	s.mu.Unlock()
	if sess != nil {
		_ = sess.Close()
	}
	s.background.Wait()
	if s.http != nil {
		s.http.CloseIdleConnections()
	}
}
