package host

import (
	"fmt"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/services/gateway/admission"
)

// admissionOptions are the flags that bound what a gateway takes.
type admissionOptions struct{ admission.Config }

func (o *admissionOptions) flags(f *pflag.FlagSet) {
	def := admission.DefaultConfig()
	f.Int64Var(&o.MaxRequests, "max-requests", def.MaxRequests, "requests that a gateway takes at a time, streams not counted; further ones are told to come again (503); 0: no bound")
	f.Int64Var(&o.MaxStarts, "max-starts", def.MaxStarts, "starts of runs among --max-requests; 0: no bound")
	f.DurationVar(&o.StartDelay, "start-delay", def.StartDelay, "how long runs may take from their request to their first step before the gateway takes fewer (503); waiting for a free place of --max-runs is not counted; 0: it takes all")
}

func (o *admissionOptions) validate() error {
	if err := o.Validate(); err != nil {
		return fmt.Errorf("--max-requests, --max-starts, --start-delay: %w", err)
	}
	return nil
}
