package engine

import (
	"log/slog"
	"time"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/internal/queuetime"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/engine/snapshot"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Deps are the executor's collaborators.
type Deps struct {
	Storage
	Services
	Rules
	Processes
	Timers
	Telemetry
	Clock func() time.Time
}

// Storage keeps runs and what belongs to them.
type Storage struct {
	Log         runlog.Log
	Definitions Definitions
	// Cleartext stores the clear values of masked runs; nil rejects masked runs.
	Cleartext CleartextStore
	// Snapshots stores folded states of long runs; nil disables them.
	Snapshots *snapshot.Keeper
	// Quarantine records runs that cannot continue; nil disables it.
	Quarantine Quarantine
}

// Services are called while a run is executed.
type Services struct {
	Redactor Redactor
	// Secrets registers the keys that tenants bring; nil disables such keys.
	Secrets  Secrets
	Acceptor Acceptor
	Models   Models
	// Limiter applies the operator's limits of calls; nil means no limits.
	Limiter Limiter
	// Children starts child runs; nil disables them.
	Children Children
}

// Rules decide how the nodes of a run may be executed.
type Rules struct {
	Types node.Source
	// Gate checks the requirements of nodes against their model; nil accepts every model.
	Gate machine.Gate
	// NodeSecrets checks that the secrets of a node type are available; nil disables the check.
	NodeSecrets machine.Secrets
	// Policy checks the operator's rules for models; nil means no rules.
	Policy machine.Policy
	// Capabilities are the runtime capabilities of the host.
	Capabilities []string
	// NoAIEnvelope fails nodes that emit envelopes.
	NoAIEnvelope bool
}

// plan returns how the runs of a definition are executed.
func (r Rules) plan(d *definition.Entry) machine.Plan {
	return machine.Plan{
		Def:          d.Def,
		Graph:        d.Graph,
		Flow:         d.Flow,
		Types:        node.CurrentOf(r.Types),
		Gate:         r.Gate,
		Secrets:      r.NodeSecrets,
		Policy:       r.Policy,
		Capabilities: r.Capabilities,
		NoAIEnvelope: r.NoAIEnvelope,
	}
}

// Processes are the dispatchers that share the queue.
type Processes struct {
	// Leases is the liveness of dispatcher processes; nil means that this is the only process.
	Leases Leases
	// Peers notifies the processes that own runs; nil means that there are none.
	Peers Peers
	// Queued reports whether a run waits for a dispatcher, in the queue with the frame at pos or in a
	// ticket; nil means none does.
	Queued func(r subject.Run, pos uint64) bool
}

// Timers wake waiting runs.
type Timers struct {
	// Wait is called when a run waits until an instant and holds no executor.
	Wait func(run subject.Run, head frame.Head, due time.Time)
	// Forget is called when a waiting run must not be woken any more, because it ended, is paused,
	// executed, or in the queue; nil disables it.
	Forget func(tenant, runID string)
}

// Telemetry reports the work of this process.
type Telemetry struct {
	Logger *slog.Logger
	// Spans exports the spans of runs; nil disables it.
	Spans Spans
	// APIs are the interfaces of providers, for spans; nil names providers by their ids.
	APIs runspan.APIs
	// Requested completes the spans of model calls; nil leaves out the requested model.
	Requested Requested
	// Metrics counts the work of this process; nil disables it.
	Metrics Metrics
	// FirstAppend measures the time from delivery to the first append; nil disables it.
	FirstAppend *queuetime.Meter
}

// orDefaults returns the collaborators with defaults in place of the disabled ones.
func (d Deps) orDefaults() Deps {
	if d.Metrics == nil {
		d.Metrics = noMetrics{}
	}
	if d.Queued == nil {
		d.Queued = func(subject.Run, uint64) bool { return false }
	}
	if d.Forget == nil {
		d.Forget = func(string, string) {}
	}
	if d.Leases == nil {
		d.Leases = newSoleProcess()
	}
	if d.Snapshots == nil {
		d.Snapshots = snapshot.Disabled(d.Log)
	}
	return d
}
