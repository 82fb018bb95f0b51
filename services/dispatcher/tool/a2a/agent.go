package a2a

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/a2aproject/a2a-go/a2a"
	"github.com/a2aproject/a2a-go/a2aclient"
	"github.com/a2aproject/a2a-go/a2aclient/agentcard"

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
	// Token is its bearer token; TokenName says where the operator sets it.
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

	mu     sync.Mutex // guards client
	client *a2aclient.Client
}

func newAgent(c Config) *agent {
	return &agent{cfg: c, http: outbound.New(outbound.Config{Base: c.URL, Token: c.Token, MaxBytes: tool.MaxResultBytes})}
}

// connect returns a client of the endpoint in the agent's card.
func (a *agent) connect(ctx context.Context) (*a2aclient.Client, error) {
	a.mu.Lock()
	client := a.client
	a.mu.Unlock()
	if client != nil {
		return client, nil
	}
	client, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.client = client
	return client, nil
}

func (a *agent) open(ctx context.Context) (*a2aclient.Client, error) {
	factory := a2aclient.NewFactory(
		a2aclient.WithDefaultsDisabled(), // JSON-RPC only: it uses the restricted client
		a2aclient.WithJSONRPCTransport(a.http),
		a2aclient.WithConfig(a2aclient.Config{Polling: true}),
	)
	card, err := agentcard.NewResolver(a.http).Resolve(ctx, a.cfg.URL.String())
	if status, ok := errors.AsType[*agentcard.ErrStatusNotOK](err); ok && isAbsent(status.StatusCode) {
		return factory.CreateFromEndpoints(ctx, []a2a.AgentInterface{{
			URL:       a.cfg.URL.String(),
			Transport: a2a.TransportProtocolJSONRPC,
		}})
	}
	if err != nil {
		return nil, err
	}
	if card.PreferredTransport == "" {
		card.PreferredTransport = a2a.TransportProtocolJSONRPC // the default of the protocol
	}
	client, err := factory.CreateFromCard(ctx, card)
	if err != nil {
		return nil, errNoJSONRPC
	}
	return client, nil
}

// errNoJSONRPC means that the agent's card has no supported endpoint.
var errNoJSONRPC = errors.New("the agent's card names no JSON-RPC endpoint of A2A 0.3")

func isAbsent(status int) bool {
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed
}

// dropClient makes the next call read the card again, because the agent may have moved.
func (a *agent) dropClient() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.client = nil
}

func (a *agent) peer() outbound.Peer {
	return outbound.Peer{Name: fmt.Sprintf("A2A agent %q", a.cfg.ID), TokenName: a.cfg.TokenName}
}
