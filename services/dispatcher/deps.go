package dispatcher

import (
	"context"
	"log/slog"
	"time"

	"waybill.dev/waybill/internal/archive"
	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/settings"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/services/dispatcher/create"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/engine/cleartext"
	"waybill.dev/waybill/services/dispatcher/engine/snapshot"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
	"waybill.dev/waybill/services/dispatcher/provider/credential"
	"waybill.dev/waybill/services/dispatcher/queue/tenantlimit"
	"waybill.dev/waybill/services/dispatcher/retention"
	"waybill.dev/waybill/services/dispatcher/seam"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// Deps are the collaborators; the caller owns and closes them.
type Deps struct {
	Storage
	Queueing
	Services
	Calls
	// Seams are the test seams; nil in production.
	Seams  *seam.Seams
	Clock  func() time.Time
	Logger *slog.Logger
	// Spans exports the spans of runs; nil disables it.
	Spans engine.Spans
}

// Storage keeps runs and the records of dispatchers.
type Storage struct {
	Log       runlog.Log
	Workflows kv.Store
	Claims    kv.Store
	// Quarantine keeps the records of quarantined runs.
	Quarantine kv.Store
	// Leases keeps which dispatchers are alive.
	Leases kv.Store
	// Cleartext stores the clear values of runs with a masked log. If nil, workflows with sensitive
	// values are rejected.
	Cleartext *cleartext.Store
	// Snapshots stores folded states of long runs; nil folds every run from its log.
	Snapshots *snapshot.Store
	// Erasures removes runs from the log; nil disables erasure. EraseRecords removes what the host
	// keeps of a run outside its log; nil if there is nothing.
	Erasures     runlog.Eraser
	EraseRecords retention.EraseStep
	// EraseTenant removes what the host keeps of a tenant without runs, and EraseWorkflow a record of
	// Workflows; nil if the host cannot.
	EraseTenant   func(ctx context.Context, tenant string) error
	EraseWorkflow func(ctx context.Context, key string) error
	// Retention has the legal holds and the clock of retention; nil disables both, and nothing expires.
	Retention kv.Store
	// Archive keeps the archives of ended runs; nil disables it. Runs whose retention is over are archived
	// before they are erased.
	Archive archive.Target
	// LogState returns the size of the log in bytes and the time of its newest record.
	LogState func(ctx context.Context) (bytes uint64, newest time.Time, err error)
}

// Queueing delivers runs and limits how many are executed.
type Queueing struct {
	Queue runlog.Queue
	// Waiting stores runs that wait for a slot or a limit, and Rates the starts of rate limits. If
	// nil, runs are executed in queue order without limits.
	Waiting, Rates kv.Store
	// TenantLimits are the limits and shares of tenants; nil for none.
	TenantLimits *settings.Source[*tenantlimit.Limits]
	// ToolLimits are the limits of calls of tools and agents; nil for none.
	ToolLimits *settings.Source[*tool.Limits]
}

// Services are the other services and dispatchers.
type Services struct {
	Acceptor acceptorv1.AcceptorClient
	Redactor redactorv1.RedactorClient
	EventLog eventlogv1.EventLogClient
	// Peers connects other dispatchers; nil if there are none.
	Peers Peers
}

// Calls are what nodes may call: models, with their keys and rules, and tools.
type Calls struct {
	Providers *provider.Registry
	// Credentials are tenants' own keys; nil disables them.
	Credentials *credential.Store
	// Policies restricts tenants to models; nil allows all.
	Policies *model.Policies
	// Catalogue describes models; nil uses the built-in one.
	Catalogue *catalogue.Catalogue
	// Tools are the runners of nodes that call external peers; empty without configured peers.
	Tools tool.Runners
}

// cleartextStore and recordStore return nil without a store: a nil *cleartext.Store in an interface
// is not nil.
func (s Storage) cleartextStore() engine.CleartextStore {
	if s.Cleartext == nil {
		return nil
	}
	return s.Cleartext
}

func (s Storage) recordStore() create.CleartextStore {
	if s.Cleartext == nil {
		return nil
	}
	return s.Cleartext
}
