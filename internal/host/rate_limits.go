package host

import (
	"fmt"
	"log/slog"
	"time"

	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/services/gateway/admission"
)

// varForceRateLimit is the protocol's switch for a limit that tests reach at once. It needs the test
// seams.
const varForceRateLimit = "OPENWOP_FORCE_RATE_LIMIT"

// forced is the limit of that switch.
var forced = admission.RateRule{Scope: admission.PerKey, Limit: 3, Period: time.Minute, Burst: 3}

// rateLimits returns the limits of the settings, and the file that changes them; nil without one.
func (o *Public) rateLimits(log *slog.Logger, getenv func(string) (string, bool)) (cfg admission.RateConfig, file *admission.RateFile, err error) {
	if force, _ := getenv(varForceRateLimit); o.TestSeams && force == "true" {
		return admission.RateConfig{Rules: []admission.RateRule{forced}, Discovery: true}, nil, nil
	}
	rules, err := admission.ParseRateRules(o.RateLimits)
	if err != nil {
		return cfg, nil, fmt.Errorf("--rate-limit: %w", err)
	}
	if o.RateLimitFile == "" {
		return admission.RateConfig{Rules: rules}, nil, nil
	}
	file = &admission.RateFile{Path: o.RateLimitFile, General: rules, Log: log}
	if cfg, _, err = file.Read(); err != nil {
		return cfg, nil, fmt.Errorf("--rate-limits %s: %w", o.RateLimitFile, hostfile.WithoutPath(err))
	}
	return cfg, file, nil
}
