package a2a

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"

	"waybill.dev/waybill/services/dispatcher/tool"
	"waybill.dev/waybill/services/dispatcher/tool/outbound"
)

// Config describes an agent.
type Config struct {
	// ID is its id in workflows.
	ID string
	// URL is the base of its card, /.well-known/agent-card.json, or its JSON-RPC endpoint if it has
	// no card.
	URL *url.URL
	// Token is its bearer token; TokenName is the variable with it.
	Token, TokenName string
}

// Parse reads ID=URL.
func Parse(id, target string) (Config, error) {
	c := Config{ID: id}
	if err := tool.CheckID(id); err != nil {
		return c, err
	}
	u, err := outbound.ParseBase(target)
	if err != nil {
		return c, fmt.Errorf("agent %s: %w", id, err)
	}
	c.URL = u
	return c, nil
}

// agent is one A2A peer. Its card is read before the first message.
type agent struct {
	cfg  Config
	http *http.Client

	mu   sync.Mutex // guards link
	link *link
}

// link is a client of an agent's endpoint, of one version of the protocol.
type link struct {
	*a2aclient.Client

	version a2a.ProtocolVersion
	// older is tried if the endpoint does not know version, because no card names its version; nil
	// for none.
	older *link
}

func newAgent(c Config) *agent {
	return &agent{cfg: c, http: outbound.New(outbound.Config{Base: c.URL, Token: c.Token, MaxBytes: tool.MaxResultBytes})}
}

// connect returns a client of the endpoint in the agent's card. fresh reports whether the card was
// read for it.
func (a *agent) connect(ctx context.Context) (l *link, fresh bool, err error) {
	a.mu.Lock()
	l = a.link
	a.mu.Unlock()
	if l != nil {
		return l, false, nil
	}
	if l, err = a.open(ctx); err != nil {
		return nil, false, err
	}
	a.keep(l)
	return l, true, nil
}

// keep makes the next call use a link. nil makes it read the card again, because the agent may have
// moved.
func (a *agent) keep(l *link) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.link = l
}

// replace returns the link to use after the agent did not know the version of a link; nil if there
// is none. A link that was kept may be older than the agent.
func (a *agent) replace(ctx context.Context, refused *link, fresh bool) (*link, error) {
	next := refused.older
	if next == nil && !fresh {
		l, err := a.open(ctx)
		if err != nil {
			return nil, err
		}
		if l.version != refused.version {
			next = l
		}
	}
	a.keep(next)
	return next, nil
}

func (a *agent) open(ctx context.Context) (*link, error) {
	resolver := &agentcard.Resolver{Client: a.http, CardParser: parseCard}
	card, err := resolver.Resolve(ctx, a.cfg.URL.String(), agentcard.WithRequestHeader(a2a.SvcParamVersion, string(a2a.Version)))
	if status, ok := errors.AsType[*agentcard.ErrStatusNotOK](err); ok && isAbsent(status.StatusCode) {
		return a.openBare(ctx)
	}
	if err != nil {
		return nil, err
	}
	at, err := endpoint(card, a.cfg.URL)
	if err != nil {
		return nil, err
	}
	return a.dial(ctx, at)
}

// openBare returns a link to an endpoint without a card: of A2A 1.0, or 0.3 if it does not know that.
func (a *agent) openBare(ctx context.Context) (*link, error) {
	at := a2a.AgentInterface{URL: a.cfg.URL.String(), ProtocolBinding: a2a.TransportProtocolJSONRPC, ProtocolVersion: a2a.Version}
	newest, err := a.dial(ctx, &at)
	if err != nil {
		return nil, err
	}
	old := at
	old.ProtocolVersion = a2av0.Version
	newest.older, err = a.dial(ctx, &old)
	return newest, err
}

// dial creates a client; it sends nothing.
func (a *agent) dial(ctx context.Context, at *a2a.AgentInterface) (*link, error) {
	client, err := a2aclient.NewFromEndpoints(ctx, []*a2a.AgentInterface{at},
		a2aclient.WithDefaultsDisabled(), // JSON-RPC only: it uses the restricted client
		a2aclient.WithJSONRPCTransport(a.http),
		a2av0.WithJSONRPCTransport(a2av0.JSONRPCTransportConfig{Client: a.http}),
	)
	if err != nil {
		return nil, err
	}
	return &link{Client: client, version: at.ProtocolVersion}, nil
}

func isAbsent(status int) bool {
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed
}

// peer describes the agent, and the version of the protocol once that is known.
func (a *agent) peer(l *link) outbound.Peer {
	name := fmt.Sprintf("A2A agent %q", a.cfg.ID)
	if l != nil {
		name += fmt.Sprintf(" (A2A %s)", l.version)
	}
	return outbound.Peer{Name: name, TokenName: a.cfg.TokenName}
}
