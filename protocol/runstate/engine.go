package runstate

import (
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// retryNewer is the retry hint for callers, who may reach a newer host next time.
const retryNewer = 5 * time.Second

// Refuse returns an error if a later engine version has worked on the run: this version would drop
// state it does not know (OpenWOP host contract §3.2).
func Refuse(runID string, version int) error {
	if version <= wire.EngineVersion {
		return nil
	}
	return fault.New(fault.EngineVersionMismatch, "the run requires engine version %d, this host has version %d; retry on a newer host", version, wire.EngineVersion).
		With("runId", runID).With("persistedVersion", version).With("currentVersion", wire.EngineVersion).After(retryNewer)
}
