package runstate

import (
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// retryNewer is the hint to a caller who may meet a newer host at the next try.
const retryNewer = 5 * time.Second

// Refuse refuses a run that an engine of a later version has begun, or has gone on with:
// what that one knows of the run, this one would leave out (OpenWOP host contract §3.2).
func Refuse(runID string, version int) error {
	if version <= wire.EngineVersion {
		return nil
	}
	return fault.New(fault.EngineVersionMismatch, "the run is of engine version %d, and this host has %d: a newer one has to go on with it", version, wire.EngineVersion).
		With("runId", runID).With("persistedVersion", version).With("currentVersion", wire.EngineVersion).After(retryNewer)
}
