// Package runlimits reads the limits of a host on a run.
package runlimits

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/services/dispatcher"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Limits are the limits of a host on a run.
type Limits node.Limits

func (l *Limits) Flags(f *pflag.FlagSet) {
	def := dispatcher.DefaultConfig().Limits
	f.IntVar(&l.MaxNodeExecutions, "max-node-executions", def.MaxNodeExecutions, "node executions of a run, retries included; runs keep the limit they were created with")
	f.DurationVar(&l.MaxRunDuration, "max-run-duration", def.MaxDuration, "time a run may take, without pauses, waits for an answer and waits of core.delay; runs keep the limit they were created with")
}

func (l *Limits) Validate() (errs []error) {
	if n := l.MaxNodeExecutions; n < 1 || n > dispatcher.MaxNodeExecutions {
		errs = append(errs, fmt.Errorf("--max-node-executions %d: want 1 to %d", n, dispatcher.MaxNodeExecutions))
	}
	if d := l.MaxRunDuration; d < time.Second || d > dispatcher.MaxRunDuration {
		errs = append(errs, fmt.Errorf("--max-run-duration %s: want 1s to %s", d, dispatcher.MaxRunDuration))
	}
	return errs
}
