// Package runlimits reads the limits of a host on a run.
package runlimits

import (
	"fmt"
	"time"

	"waybill.dev/waybill/services/dispatcher"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Limits are the limits of a host on a run.
type Limits node.Limits

// Default are the limits without flags.
func Default() Limits {
	def := dispatcher.DefaultConfig().Limits
	return Limits{MaxNodeExecutions: def.MaxNodeExecutions, MaxRunDuration: def.MaxDuration}
}

// Validate returns all errors.
func (l *Limits) Validate() (errs []error) {
	if n := l.MaxNodeExecutions; n < 1 || n > dispatcher.MaxNodeExecutions {
		errs = append(errs, fmt.Errorf("--max-node-executions %d: want 1 to %d", n, dispatcher.MaxNodeExecutions))
	}
	if d := l.MaxRunDuration; d < time.Second || d > dispatcher.MaxRunDuration {
		errs = append(errs, fmt.Errorf("--max-run-duration %s: want 1s to %s", d, dispatcher.MaxRunDuration))
	}
	return errs
}
