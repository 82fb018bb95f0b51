package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/obs/tracing"
	"waybill.dev/waybill/internal/rpc/sticky"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
)

// spreadOptions are what a service of a host that is spread over processes needs
// besides its own: the log, the other services, and what all of them share.
type spreadOptions struct {
	nats                                   natsAddress
	redactor, acceptor, dispatcher, events string
	// peers is how the others are reached; its address is not used.
	peers peer
}

// peerFlags are those of the other services, of which this one calls some.
func (o *spreadOptions) peerFlags(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f.StringVar(o.addr(name), name, "", "HOST:PORT of the "+name+" service, or several divided by commas; of a name, all addresses are used; required")
	}
	f.StringVar(&o.peers.ca, "peer-ca", "", "PEM certificates that vouch for the other services; empty: those that the system trusts, and no TLS on loopback")
	f.StringVar(&o.peers.cert, "peer-cert", "", "PEM certificate chain to show to the other services; empty: none")
	f.StringVar(&o.peers.key, "peer-key", "", "PEM key of --peer-cert")
	f.StringVar(&o.peers.tokenFile, "peer-token-file", "", "file with the bearer token for the other services")
	f.BoolVar(&o.peers.plaintext, "peer-plaintext", false, "send secrets and the token to the other services in clear, because something else guards the way")
}

// The names of the services, as flags and in messages.
const (
	nameRedactor   = "redactor"
	nameAcceptor   = "acceptor"
	nameDispatcher = "dispatcher"
	nameEventLog   = "eventlog"
)

func (o *spreadOptions) addr(name string) *string {
	return map[string]*string{nameRedactor: &o.redactor, nameAcceptor: &o.acceptor, nameDispatcher: &o.dispatcher, nameEventLog: &o.events}[name]
}

// validate returns all that is wrong, joined; names are the services that are called.
func (o *spreadOptions) validate(names ...string) error {
	errs := []error{o.nats.validate()}
	if o.nats.url == "" {
		errs = append(errs, errors.New("--nats: the services of a host meet in one NATS; give its URL, such as nats://nats:4222"))
	}
	for _, name := range names {
		if *o.addr(name) == "" {
			errs = append(errs, fmt.Errorf("--%s: give the HOST:PORT of the %s service", name, name))
			continue
		}
		p := o.peers
		p.addr = *o.addr(name)
		if err := p.check(); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// readPolicy retries what only reads, or may be repeated, with a budget: no more than a
// tenth of the calls, so that a service in trouble is not called all the more.
const readPolicy = `"retryThrottling":{"maxTokens":100,"tokenRatio":0.1},"methodConfig":[{"name":[%s],"retryPolicy":` +
	`{"maxAttempts":3,"initialBackoff":"0.05s","maxBackoff":"0.5s","backoffMultiplier":3,"retryableStatusCodes":["UNAVAILABLE"]}}]`

// serviceConfig spreads calls over the replicas that say they are healthy, by one of the names that
// they have for it.
func serviceConfig(balancer, health string, repeatable ...string) grpc.DialOption {
	names := make([]string, len(repeatable))
	for i, full := range repeatable {
		service, method, _ := strings.Cut(strings.TrimPrefix(full, "/"), "/")
		names[i] = fmt.Sprintf(`{"service":%q,"method":%q}`, service, method)
	}
	cfg := fmt.Sprintf(`{"loadBalancingConfig":[{%q:{}}],"healthCheckConfig":{"serviceName":%q}`, balancer, health)
	if len(names) > 0 {
		cfg += "," + fmt.Sprintf(readPolicy, strings.Join(names, ","))
	}
	return grpc.WithDefaultServiceConfig(cfg + "}")
}

const roundRobin = "round_robin"

// reach makes the clients of the other services that have an address.
func (h *host) reach(o *spreadOptions) error {
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
			append(toRedactors(), tracing.Forward()...),
			func(c grpc.ClientConnInterface) { h.clients.redactor = redactorv1.NewRedactorClient(c) },
			nil,
		},
		{
			nameAcceptor,
			nil,
			func(c grpc.ClientConnInterface) { h.clients.acceptor = acceptorv1.NewAcceptorClient(c) },
			[]string{acceptorv1.Acceptor_ListKinds_FullMethodName, acceptorv1.Acceptor_GetAsset_FullMethodName},
		},
		{
			nameDispatcher,
			nil,
			func(c grpc.ClientConnInterface) { h.clients.dispatcher = dispatcherv1.NewDispatcherClient(c) },
			[]string{
				dispatcherv1.Dispatcher_Describe_FullMethodName, dispatcherv1.Dispatcher_ListWorkflows_FullMethodName,
				dispatcherv1.Dispatcher_GetWorkflow_FullMethodName, dispatcherv1.Dispatcher_GetInterrupt_FullMethodName,
			},
		},
		{
			nameEventLog,
			append([]grpc.DialOption{serviceConfig(roundRobin, healthOfAll,
				eventlogv1.EventLog_GetRun_FullMethodName, eventlogv1.EventLog_ListRuns_FullMethodName, eventlogv1.EventLog_ReadEvents_FullMethodName)}, tracing.Forward()...),
			func(c grpc.ClientConnInterface) { h.clients.events = eventlogv1.NewEventLogClient(c) },
			nil,
		},
	} {
		if *o.addr(p.name) == "" {
			continue
		}
		to := o.peers
		to.addr = *o.addr(p.name)
		if len(p.reads) > 0 {
			p.opts = append(p.opts, serviceConfig(roundRobin, healthOfAll, p.reads...))
		}
		conn, err := to.dial(h.later, p.opts...)
		if err != nil {
			return fmt.Errorf("%w: --%s: %w", errUsage, p.name, err)
		}
		h.later(func() { _ = conn.Close() })
		h.peers = append(h.peers, newService(p.name, conn))
		if len(p.reads) == 0 {
			p.use(conn)
			continue
		}
		reads, err := to.dial(h.later, serviceConfig(roundRobin, healthOfReads, p.reads...))
		if err != nil {
			return fmt.Errorf("%w: --%s: %w", errUsage, p.name, err)
		}
		h.later(func() { _ = reads.Close() })
		p.use(either{conn, reads, p.reads})
	}
	return nil
}

// toRedactors is how redactors are called. Secrets are registered with one of them: it
// has to be found again, by everybody.
func toRedactors() []grpc.DialOption {
	return []grpc.DialOption{
		serviceConfig(sticky.Policy, healthOfAll, redactorv1.Redactor_Redact_FullMethodName, redactorv1.Redactor_Register_FullMethodName),
		grpc.WithChainUnaryInterceptor(sticky.Unary(tenantOf)),
	}
}

// tenantOf is the key of calls to the redactor: secrets are a tenant's, or of a run of
// one, and are looked for together.
func tenantOf(req any) string {
	if r, ok := req.(interface{ GetScope() *redactorv1.Scope }); ok {
		return r.GetScope().GetTenant()
	}
	return ""
}
