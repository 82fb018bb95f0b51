package host

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"time"

	"waybill.dev/waybill/internal/archive/store"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/internal/host/runlimits"
	"waybill.dev/waybill/internal/host/tools"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// Execution configures the execution of runs.
type Execution struct {
	// Workflows are directories of definitions, Packs is a directory of packs; both may be empty.
	Workflows           []string
	Packs               string
	Prompts             packs.PromptOptions
	Models              models.Options
	Tools               tools.Options
	RuntimeCapabilities []string

	Lease, DrainTimeout time.Duration
	// MaxRuns limits the runs of one dispatcher, MaxHandedOut those of all dispatchers.
	MaxRuns, MaxHandedOut int
	MaxQueueWait          time.Duration
	RunLimits             runlimits.Limits
	// QuestionTimeout limits the wait for answers to a model's questions; 0 means no limit.
	QuestionTimeout time.Duration
	// Retention is how long runs are kept after their end, as workflow.ParseRetention reads it.
	// RetentionRate limits the erased runs per second.
	Retention     string
	RetentionRate float64
	// Archive is the directory or bucket of the archives of ended runs; empty disables it.
	Archive string
	// MaxRetryAttempts limits the calls of one emission, TruncationMultiplier is the growth of their
	// token budget after a truncation.
	MaxRetryAttempts, TruncationMultiplier int
	// AssetMemory limits the images, sounds and files of all prompts of a dispatcher, in bytes.
	AssetMemory int64
	// TenantLimits is a file; empty means equal tenants without limits.
	TenantLimits string
	// AIEnvelope is the capability host.aiEnvelope, which nodes that call models need.
	AIEnvelope bool
	// ToolLimits is a file; empty means no limits of the calls of tools and agents.
	ToolLimits string
	TestSeams  bool
}

// DefaultExecution are the settings without flags.
func DefaultExecution() Execution {
	def := dispatcher.DefaultConfig()
	return Execution{
		Models: models.DefaultOptions(), RunLimits: runlimits.Default(),
		Lease: def.Lease.Duration, DrainTimeout: 30 * time.Second, MaxRuns: def.MaxRuns, MaxQueueWait: def.Intake.MaxWait,
		MaxRetryAttempts: def.Completion.MaxAttempts, TruncationMultiplier: def.Completion.Multiplier,
		MaxHandedOut: jetstream.DefaultConfig().MaxPending, AIEnvelope: true,
		AssetMemory: model.DefaultAssetMemory,
		Retention:   workflow.Unlimited, RetentionRate: def.RetentionRate,
	}
}

// maxRetentionRate is the highest --retention-rate.
const maxRetentionRate = 10_000

// minLease is the shortest --lease.
const minLease = 200 * time.Millisecond

// Validate returns all errors, joined. It also sets the default model.
func (o *Execution) Validate() error {
	errs := append(o.Models.Validate(o.seamProviders()...), o.checkValues(), o.Tools.Validate())
	for _, d := range append([]string{o.Packs, o.Prompts.Dir}, o.Workflows...) {
		if st, err := os.Stat(d); d != "" && (err != nil || !st.IsDir()) {
			errs = append(errs, fmt.Errorf("directory %q cannot be read: give an existing directory to --workflows, --packs or --prompts", d))
		}
	}
	quiet := slog.New(slog.DiscardHandler) // the file is opened again
	_, tenants := o.openTenantLimits(quiet)
	_, calls := o.openToolLimits(quiet)
	return errors.Join(append(errs, tenants, calls)...)
}

// Check returns all errors in the values, joined. It reads neither files nor variables.
func (o *Execution) Check() error {
	values := o.Models
	values.ValuesOnly = true
	return errors.Join(append(values.Validate(o.seamProviders()...), o.checkValues(), o.Tools.Check())...)
}

// seamProviders are the providers of the test seams.
func (o *Execution) seamProviders() []string {
	if o.TestSeams {
		return []string{mock.ID}
	}
	return nil
}

// checkValues returns all errors in the values of the flags that have no part of their own, joined.
func (o *Execution) checkValues() error {
	errs := o.Prompts.Validate()
	if o.Lease < minLease {
		errs = append(errs, fmt.Errorf("--lease %s: want at least %s, so that renewals can keep it", o.Lease, minLease))
	}
	if o.DrainTimeout < 0 {
		errs = append(errs, fmt.Errorf("--drain-timeout %s: want at least 0s", o.DrainTimeout))
	}
	if o.MaxRuns < 1 {
		errs = append(errs, fmt.Errorf("--max-runs %d: want at least 1", o.MaxRuns))
	}
	errs = append(errs, o.RunLimits.Validate()...)
	if o.QuestionTimeout < 0 || o.QuestionTimeout > workflow.MaxQuestionTimeout || o.QuestionTimeout%time.Millisecond != 0 {
		errs = append(errs, fmt.Errorf("--question-timeout %s: want whole milliseconds up to %s, or 0 for no limit", o.QuestionTimeout, workflow.MaxQuestionTimeout))
	}
	if _, err := workflow.ParseRetention(o.Retention); err != nil {
		errs = append(errs, fmt.Errorf("--retention %q: %w", o.Retention, err))
	}
	if o.Archive != "" {
		if err := store.Check(o.Archive); err != nil {
			errs = append(errs, fmt.Errorf("--archive: %w", err))
		}
	}
	if o.RetentionRate <= 0 || o.RetentionRate > maxRetentionRate || math.IsNaN(o.RetentionRate) {
		errs = append(errs, fmt.Errorf("--retention-rate %g: want runs per second, more than 0 and at most %d", o.RetentionRate, maxRetentionRate))
	}
	if o.MaxRetryAttempts < 1 || o.MaxRetryAttempts > dispatcher.MaxRetryAttempts {
		errs = append(errs, fmt.Errorf("--max-retry-attempts %d: want 1 to %d", o.MaxRetryAttempts, dispatcher.MaxRetryAttempts))
	}
	if o.TruncationMultiplier < 1 || o.TruncationMultiplier > dispatcher.MaxTruncationMultiplier {
		errs = append(errs, fmt.Errorf("--truncation-multiplier %d: want 1 to %d", o.TruncationMultiplier, dispatcher.MaxTruncationMultiplier))
	}
	if o.AssetMemory < model.MinAssetMemory {
		errs = append(errs, fmt.Errorf("--max-asset-memory %d: want at least %d, for one prompt with its copies", o.AssetMemory, model.MinAssetMemory))
	}
	if o.MaxHandedOut < 1 {
		errs = append(errs, fmt.Errorf("--max-handed-out %d: want at least 1", o.MaxHandedOut))
	}
	if o.MaxQueueWait < 0 {
		errs = append(errs, fmt.Errorf("--max-queue-wait %s: want at least 0, which is no bound", o.MaxQueueWait))
	}
	for _, id := range o.RuntimeCapabilities {
		if err := dispatcher.CheckRuntimeCapability(id); err != nil {
			errs = append(errs, fmt.Errorf("--%w", err))
		}
	}
	return errors.Join(errs...)
}

// logConfig configures the delivery of runs. sole: no other dispatcher can be running.
func (o *Execution) logConfig(sole bool) jetstream.Config {
	cfg := jetstream.DefaultConfig()
	cfg.MaxPending, cfg.AckWait = o.MaxHandedOut, o.ackWait(sole)
	return cfg
}

// minAckWait is the minimum ackWait of a sole dispatcher.
const minAckWait = time.Second

// ackWait is the time after which an unacknowledged run is delivered again. All dispatchers of an
// installation must agree on it. A sole dispatcher uses its lease, so that after a crash fetched runs
// start within that time.
func (o *Execution) ackWait(sole bool) time.Duration {
	if !sole {
		return runlog.AckWait
	}
	return min(max(o.Lease, minAckWait), runlog.AckWait)
}
