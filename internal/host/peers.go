package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/host/peer"
	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/obs/tracing"
	"waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
)

// checkPeers asks all other services at once. The log is told who goes and who comes back, and
// at which address; what is returned may be told to anybody.
func (h *Host) checkPeers(ctx context.Context) error {
	var wg sync.WaitGroup
	changed := make([]bool, len(h.peers))
	for i, p := range h.peers {
		wg.Go(func() { changed[i] = p.Look(ctx) })
	}
	wg.Wait()
	for i, p := range h.peers {
		switch {
		case !changed[i]:
		case p.Away != nil:
			h.Log.Warn("another service is away", "peer", p.Name, "error", p.Away)
		default:
			h.Log.Info("another service is there", "peer", p.Name)
		}
	}
	return h.without(func(p *peer.Service) bool { return p.Away != nil })
}

// unmet are the other services that were not there yet since this process began.
func (h *Host) unmet() error { return h.without(func(p *peer.Service) bool { return !p.Reached }) }

// without names the services of which lacking is true; nil: of none.
func (h *Host) without(lacking func(*peer.Service) bool) error {
	var names []string
	for _, p := range h.peers {
		if lacking(p) {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("no %s service can be reached", strings.Join(names, ", no "))
}

// Peers are what a service of a host that is spread over processes needs
// besides its own: the log, the other services, and what all of them share.
type Peers struct {
	NATS                                   natsstore.Address
	redactor, acceptor, dispatcher, events string
	// peers is how the others are reached; its address is not used.
	peers peer.Address
}

// PeerFlags are those of the other services, of which this one calls some.
func (o *Peers) PeerFlags(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f.StringVar(o.addr(name), name, "", "HOST:PORT of the "+name+" service, or several divided by commas; of a name, all addresses are used; required")
	}
	f.StringVar(&o.peers.CA, "peer-ca", "", "PEM certificates that vouch for the other services; empty: those that the system trusts, and no TLS on loopback")
	f.StringVar(&o.peers.Cert, "peer-cert", "", "PEM certificate chain to show to the other services; empty: none")
	f.StringVar(&o.peers.Key, "peer-key", "", "PEM key of --peer-cert")
	f.StringVar(&o.peers.TokenFile, "peer-token-file", "", "file with the bearer token for the other services")
	f.BoolVar(&o.peers.Plaintext, "peer-plaintext", false, "send secrets and the token to the other services in clear, because something else guards the way")
}

// The names of the services, as flags and in messages.
const (
	nameRedactor   = "redactor"
	nameAcceptor   = "acceptor"
	nameDispatcher = "dispatcher"
	nameEventLog   = "eventlog"
)

func (o *Peers) addr(name string) *string {
	return map[string]*string{nameRedactor: &o.redactor, nameAcceptor: &o.acceptor, nameDispatcher: &o.dispatcher, nameEventLog: &o.events}[name]
}

// Validate returns all that is wrong, joined; names are the services that are called.
func (o *Peers) Validate(names ...string) error {
	errs := []error{o.NATS.Validate()}
	if o.NATS.URL == "" {
		errs = append(errs, errors.New("--nats: the services of a host meet in one NATS; give its URL, such as nats://nats:4222"))
	}
	for _, name := range names {
		if *o.addr(name) == "" {
			errs = append(errs, fmt.Errorf("--%s: give the HOST:PORT of the %s service", name, name))
			continue
		}
		p := o.peers
		p.Addr = *o.addr(name)
		if err := p.Check(); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// reach makes the clients of the other services that have an address.
func (h *Host) reach(o *Peers) error {
	for _, p := range []struct {
		name string
		opts []grpc.DialOption
		use  func(grpc.ClientConnInterface)
		// reads are the methods that the service answers also while it lacks others; opts say how
		// one is called that has none.
		reads []string
	}{
		{
			nameRedactor,
			append(peer.ToRedactors(), tracing.Forward()...),
			func(c grpc.ClientConnInterface) { h.Clients.redactor = redactorv1.NewRedactorClient(c) },
			nil,
		},
		{
			nameAcceptor,
			nil,
			func(c grpc.ClientConnInterface) { h.Clients.acceptor = acceptorv1.NewAcceptorClient(c) },
			[]string{acceptorv1.Acceptor_ListKinds_FullMethodName, acceptorv1.Acceptor_GetAsset_FullMethodName},
		},
		{
			nameDispatcher,
			nil,
			func(c grpc.ClientConnInterface) { h.Clients.Dispatcher = dispatcherv1.NewDispatcherClient(c) },
			[]string{
				dispatcherv1.Dispatcher_Describe_FullMethodName, dispatcherv1.Dispatcher_ListWorkflows_FullMethodName,
				dispatcherv1.Dispatcher_GetWorkflow_FullMethodName, dispatcherv1.Dispatcher_GetInterrupt_FullMethodName,
			},
		},
		{
			nameEventLog,
			append([]grpc.DialOption{peer.ServiceConfig(peer.RoundRobin, probe.HealthOfAll,
				eventlogv1.EventLog_GetRun_FullMethodName, eventlogv1.EventLog_ListRuns_FullMethodName, eventlogv1.EventLog_ReadEvents_FullMethodName)}, tracing.Forward()...),
			func(c grpc.ClientConnInterface) { h.Clients.events = eventlogv1.NewEventLogClient(c) },
			nil,
		},
	} {
		if *o.addr(p.name) == "" {
			continue
		}
		to := o.peers
		to.Addr = *o.addr(p.name)
		if len(p.reads) > 0 {
			p.opts = append(p.opts, peer.ServiceConfig(peer.RoundRobin, probe.HealthOfAll, p.reads...))
		}
		conn, err := to.Dial(h.later, p.opts...)
		if err != nil {
			return fmt.Errorf("%w: --%s: %w", exit.ErrUsage, p.name, err)
		}
		h.later(func() { _ = conn.Close() })
		h.peers = append(h.peers, peer.NewService(p.name, conn))
		if len(p.reads) == 0 {
			p.use(conn)
			continue
		}
		reads, err := to.Dial(h.later, peer.ServiceConfig(peer.RoundRobin, probe.HealthOfReads, p.reads...))
		if err != nil {
			return fmt.Errorf("%w: --%s: %w", exit.ErrUsage, p.name, err)
		}
		h.later(func() { _ = reads.Close() })
		p.use(peer.Either{ClientConnInterface: conn, Reads: reads, Methods: p.reads})
	}
	return nil
}
