package peer

import (
	"log/slog"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/obs/tracing"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
)

// Clients call the services of a host.
type Clients struct {
	Redactor   redactorv1.RedactorClient
	Acceptor   acceptorv1.AcceptorClient
	EventLog   eventlogv1.EventLogClient
	Dispatcher dispatcherv1.DispatcherClient
}

// route configures the calls to one of the other services.
type route struct {
	service string
	options []grpc.DialOption
	// use creates the client.
	use func(*Clients, grpc.ClientConnInterface)
	// reads are the methods that the service also answers while it lacks another service.
	reads []string
}

func routes() []route {
	return []route{
		{
			service: Redactor,
			options: append(ToRedactors(), tracing.Forward()...),
			use:     func(c *Clients, conn grpc.ClientConnInterface) { c.Redactor = redactorv1.NewRedactorClient(conn) },
		},
		{
			service: Acceptor,
			use:     func(c *Clients, conn grpc.ClientConnInterface) { c.Acceptor = acceptorv1.NewAcceptorClient(conn) },
			reads:   []string{acceptorv1.Acceptor_ListKinds_FullMethodName, acceptorv1.Acceptor_GetAsset_FullMethodName},
		},
		{
			service: Dispatcher,
			use: func(c *Clients, conn grpc.ClientConnInterface) {
				c.Dispatcher = dispatcherv1.NewDispatcherClient(conn)
			},
			reads: []string{
				dispatcherv1.Dispatcher_Describe_FullMethodName, dispatcherv1.Dispatcher_ListWorkflows_FullMethodName,
				dispatcherv1.Dispatcher_GetWorkflow_FullMethodName, dispatcherv1.Dispatcher_GetInterrupt_FullMethodName,
				dispatcherv1.Dispatcher_ListWorkflowVersions_FullMethodName,
			},
		},
		{
			service: EventLog,
			options: append([]grpc.DialOption{serviceConfig(
				roundRobin, probe.HealthOfAll,
				eventlogv1.EventLog_GetRun_FullMethodName, eventlogv1.EventLog_ListRuns_FullMethodName, eventlogv1.EventLog_ReadEvents_FullMethodName,
			)}, tracing.Forward()...),
			use: func(c *Clients, conn grpc.ClientConnInterface) { c.EventLog = eventlogv1.NewEventLogClient(conn) },
		},
	}
}

// Connect creates the clients of the services with an address, and watches their health. later is
// called with the functions that close the connections.
func Connect(o *Options, log *slog.Logger, later func(func())) (Clients, *Watch, error) {
	var clients Clients
	watch := &Watch{log: log}
	for _, r := range routes() {
		if *o.Addr(r.service) == "" {
			continue
		}
		conn, err := r.dial(o.to(r.service), later)
		if err != nil {
			return Clients{}, nil, exit.Usagef("--%s: %w", r.service, err)
		}
		watch.services = append(watch.services, newService(r.service, conn.ClientConnInterface))
		if len(r.reads) == 0 {
			r.use(&clients, conn.ClientConnInterface)
			continue
		}
		r.use(&clients, conn)
	}
	return clients, watch, nil
}

// dial connects to the healthy replicas of a service and, for reads, to those that can read.
func (r route) dial(to Address, later func(func())) (either, error) {
	options := r.options
	if len(r.reads) > 0 {
		options = append(options, serviceConfig(roundRobin, probe.HealthOfAll, r.reads...))
	}
	conn, err := to.Dial(later, options...)
	if err != nil {
		return either{}, err
	}
	later(func() { _ = conn.Close() })
	if len(r.reads) == 0 {
		return either{ClientConnInterface: conn}, nil
	}
	reads, err := to.Dial(later, serviceConfig(roundRobin, probe.HealthOfReads, r.reads...))
	if err != nil {
		return either{}, err
	}
	later(func() { _ = reads.Close() })
	return either{conn, reads, r.reads}, nil
}
