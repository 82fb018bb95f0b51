// Package model calls a model until its answer is complete and accepts the answer.
//
// One loop owns every retry of an emission. It calls the model, classifies the stop reason, finds
// the document, and validates it with the accept pipeline or the node's output schema. The next
// attempt gets a larger budget after a truncation and the validator's summary after a wrong answer.
// A refusal is not retried. Transport errors belong to the node's retry policy (OpenWOP envelope
// contract §14).
package model

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/catalogue"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
	"waybill.dev/waybill/services/dispatcher/replayguard"
)

// Config bounds the loop.
type Config struct {
	// MaxAttempts is the number of calls of one emission, the first included.
	MaxAttempts int
	// Multiplier is the growth of the output budget after a truncation.
	Multiplier int
	Defaults   Defaults
	// Timeout limits a call if neither the node nor the provider's settings do.
	Timeout time.Duration
	// Providers are the operator's settings of providers; nil uses the defaults.
	Providers *limit.All
	// Directive is how strongly models are asked to reason; empty means advisory.
	Directive Directive
	// TrustsUnknown dispatches to models whose required capabilities are not known.
	TrustsUnknown bool
	// BYOK are the providers that accept a tenant's own key.
	BYOK []string
	// TenantKeyed are the BYOK providers for which the host has no key.
	TenantKeyed []string
	// HidesFallback reports whether the fallback model is hidden from readers of a tenant's runs;
	// nil hides none.
	HidesFallback func(tenant string) bool
	// WithholdsRefusals omits refusal texts from the log. Otherwise they are recorded without
	// secrets and without words of the prompt.
	WithholdsRefusals bool
}

// Deps are the loop's collaborators.
type Deps struct {
	Models Models
	// Catalogue describes models; nil uses the built-in one.
	Catalogue *catalogue.Catalogue
	// Logger logs gate decisions; nil disables it.
	Logger  *slog.Logger
	Schemas Schemas
	// Scrubber returns the scrubber of a run. With registered it fails while the run's secrets are
	// not registered.
	Scrubber func(tenant, runID string, registered bool) Scrubber
	Prompts  Prompts
	// Keys provides tenants' own keys; nil disables them.
	Keys Keys
	// Policies restricts tenants to models; nil allows all.
	Policies *Policies
	Calls
	Clock func() time.Time
}

// Calls limits and counts the calls of models.
type Calls struct {
	// Limiter admits calls; nil admits all.
	Limiter *limit.Limiter
	// Jitter returns a duration in [0, limit); nil uses a random one.
	Jitter func(limit time.Duration) time.Duration
	// OnCall is called after each model call with its duration; nil disables it.
	OnCall func(provider string, took time.Duration)
	// OnRefused is called if a provider had no capacity for a call; nil disables it.
	OnRefused func(provider string)
	// Canned returns the provider that replaces the model's if the run's configurable has a
	// mockProvider; nil without test seams.
	Canned func(spec json.RawMessage) (provider.Provider, error)
}

// Loop executes model nodes. It is safe for concurrent use.
type Loop struct {
	cfg           Config
	deps          Deps
	projections   projections
	outputSchemas outputSchemas
	reasonings    reasonings
	configs       configs
}

// New makes a loop.
func New(cfg Config, d Deps) *Loop {
	if d.Catalogue == nil {
		d.Catalogue = catalogue.Builtin()
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Jitter == nil {
		d.Jitter = rand.N[time.Duration]
	}
	return &Loop{cfg: cfg, deps: d}
}

// Task is one model node to execute.
type Task struct {
	Tenant, RunID string
	WorkflowID    string
	TypeID        string
	Attempt       int
	Input         node.Input
	Contract      *workflow.EnvelopeContract
	Trust         wire.Trust
	// Clarifications counts the node's clarification requests accepted before.
	Clarifications int
	// Waits counts the consecutive waits for the node's model without capacity.
	Waits int
	// Answered are the model's clarification questions and answers, in order.
	Answered []Answered
	// Fallback is the model that replaces the node's own by decision of the gate; nil for none. If
	// the log withholds its name, Needs has it.
	Fallback *modelgate.Model
	Needs    *modelgate.Needs
	// CredentialRef names the tenant's own key; empty uses the host's.
	CredentialRef string
	// Replay means that the run replays another one and must make no external call.
	Replay bool
	// Trace is the run's trace context.
	Trace runspan.Context
	// Recorded maps correlationIds to the envelopes recorded before. It is not empty if the run was
	// claimed again after an answer, or a part of it, was recorded.
	Recorded map[string]Recorded
	// Retries are further calls of this emission announced in the log by a previous owner.
	Retries []Retry
	// Announced is the sequence of the last retry; 0 for none.
	Announced int
	// Composed is the recorded prompt composition of the attempt; nil for none.
	Composed *runstate.Prompt
}

// Answered is a model's clarification question and its answer.
type Answered struct{ Question, Answer json.RawMessage }

// Recorded is an accepted envelope found in the log.
type Recorded struct {
	Kind       string
	EnvelopeID string
	Payload    json.RawMessage
	// Sequence is the sequence of its event.
	Sequence int
	// Answer is its part of the model's answer.
	Answer wire.AnswerPart
}

// Result is the end of a node: events to append first, then outputs or an error.
type Result struct {
	Drafts []wire.Draft
	Output node.Output
	Trust  wire.Trust
	// Err fails the node.
	Err *wire.NodeError
	// Waits means that the node continues after its model's questions are answered.
	Waits bool
	// Interrupted means that the work could not be done by this process. The run is delivered again
	// and the node loses nothing.
	Interrupted error
	// Unsent means, with Interrupted, that no call was sent: starting again repeats nothing.
	Unsent bool
}

// Run executes a model node.
func (l *Loop) Run(ctx context.Context, t Task, j Journal) Result {
	c, bad, err := l.newCall(ctx, t, j)
	if bad != nil || err != nil {
		return Result{Err: bad, Interrupted: err, Unsent: err != nil}
	}
	if res, ok := c.resultFromLog(); ok { // whichever model and key would be used now
		return res
	}
	for _, step := range []func(context.Context) (*wire.NodeError, error){c.prepareRequest, c.setExpectation, c.fitRequest} {
		if bad, err := step(ctx); bad != nil || err != nil {
			return Result{Err: bad, Interrupted: err, Unsent: err != nil}
		}
	}
	if err := c.recordComposition(ctx); err != nil {
		return Result{Interrupted: err}
	}
	res := c.runAttempts(ctx)
	c.markUntrusted(res.Drafts)
	res.Trust = c.task.Trust
	return res
}

// markUntrusted marks the events of an untrusted prompt: they can repeat parts of it.
func (c *call) markUntrusted(drafts []wire.Draft) {
	if c.task.Trust != wire.Untrusted {
		return
	}
	for i := range drafts {
		drafts[i].Trust = wire.Untrusted
	}
}

// newCall reads the node's config and the host's limits.
func (l *Loop) newCall(ctx context.Context, t Task, j Journal) (*call, *wire.NodeError, error) {
	cfg, bad := l.configs.parse(t.Input.Config)
	if bad != nil {
		return nil, bad, nil
	}
	limits, err := l.deps.Schemas.Limits(ctx)
	if err != nil {
		return nil, nil, err
	}
	return &call{Loop: l, task: t, journal: j, cfg: cfg, limits: limits, maxAttempts: min(l.cfg.MaxAttempts, limits.SchemaRounds+1)}, nil, nil
}

// prepareRequest renders the prompt and resolves model, provider and key.
func (c *call) prepareRequest(ctx context.Context) (bad *wire.NodeError, err error) {
	var o overlay
	_ = strictjson.Read(c.task.Input.Configurable, &o) // checked at creation
	if bad, err := c.composePrompt(ctx, c.task, &c.cfg); bad != nil || err != nil {
		return bad, err
	}
	var trust wire.Trust
	if c.req, trust, bad = c.cfg.newRequest(c.task.Input, o, c.Loop.cfg.Defaults); bad != nil {
		return bad, nil
	}
	if bad := c.substitute(c.task, &c.req); bad != nil {
		return bad, nil
	}
	c.req.Messages = append(c.req.Messages, clarificationMessages(c.task.Answered)...)
	c.req.Tenant, c.authorSystem = c.task.Tenant, c.req.System
	c.task.Trust = wire.Trusted.Meet(c.task.Trust).Meet(trust).Meet(c.cfg.promptTrust())
	if c.provider, bad = c.resolveProvider(&c.req, o); bad != nil {
		return bad, nil
	}
	if bad, err := c.attachTenantKey(ctx, c.task, &c.req, o); bad != nil || err != nil {
		return bad, err
	}
	if c.req.Timeouts, bad = c.timeouts(); bad != nil {
		return bad, nil
	}
	c.verbosity = firstNonEmpty(o.Verbosity, thoughtsFull)
	c.req.Thoughts = c.cfg.Thoughts && c.verbosity != thoughtsOff && c.streamsAnswer()
	return nil, nil
}

// fitRequest adapts the request to the model and its vendor.
func (c *call) fitRequest(context.Context) (*wire.NodeError, error) {
	c.fitToModel()
	return c.projectSchema(), nil
}

func (l *Loop) resolveProvider(req *provider.Request, o overlay) (provider.Provider, *wire.NodeError) {
	if len(o.MockProvider) > 0 && l.deps.Canned != nil {
		p, err := l.deps.Canned(o.MockProvider)
		if err != nil {
			return nil, node.Invalid("/configurable/mockProvider: %s", err)
		}
		req.Provider = p.ID()
		if req.Model == "" {
			req.Model = p.ID()
		}
		return p, nil
	}
	p, ok := l.deps.Models.Lookup(req.Provider)
	if !ok {
		return nil, &wire.NodeError{
			Code:    string(fault.ProviderNotSupported),
			Message: fmt.Sprintf("no provider %q on this host; configured are %v", req.Provider, l.deps.Models.IDs()),
		}
	}
	if req.Model == "" {
		return nil, node.Invalid("/config/model: provider %q has no default model; name one in the node's config or in configurable.ai.model", req.Provider)
	}
	return p, nil
}

// call is one emission in progress.
type call struct {
	*Loop
	task     Task
	journal  Journal
	cfg      config
	req      provider.Request
	provider provider.Provider
	// authorSystem is the author's system text without the host's hint.
	authorSystem string
	limits       Limits
	maxAttempts  int
	// verbosity is how much of the model's thoughts is recorded.
	verbosity string
	// ceiling is the model's longest answer in tokens; 0 if unknown.
	ceiling int
	// projection is set if the schema was converted to the vendor's dialect.
	projection *projection.Projection
	expected   expectation
	// round counts the turns of this emission that only exchanged schemas.
	round int
	// addedSchemas are the kinds whose schemas were added to the prompt.
	addedSchemas []string
	// callsMade counts the calls of this process. ordinal counts all earlier calls of the emission,
	// including those of previous owners.
	callsMade, ordinal int
	// answerShown means that the answer was streamed and its usage recorded before; the call is
	// repeated.
	answerShown bool
	// drafts are decided events that are not appended yet. They are appended with the next frame.
	drafts []wire.Draft
}

// runAttempts calls the model until the answer is accepted or refused, or no attempt is left.
func (c *call) runAttempts(ctx context.Context) Result {
	base := c.req.Messages
	attempt, err := c.resume(ctx, base)
	switch {
	case err != nil:
		return Result{Interrupted: err}
	case c.reformatPending():
		return c.repeatReformat(ctx, attempt, base)
	case attempt > c.maxAttempts: // the previous owner stopped before recording that no attempt is left
		return c.failExhausted(schemaTalkFailure(), c.maxAttempts)
	}
	for c.answerShown = c.partiallyRecorded(); ; attempt++ {
		c.ordinal = c.callOrdinal(attempt - 1)
		res, fail := c.callModel(ctx)
		if fail != nil {
			return *fail
		}
		v := c.judgeAnswer(ctx, res, attempt)
		if v.done != nil {
			return *v.done
		}
		c.answerShown = false
		if attempt >= c.maxAttempts || c.atOutputCeiling(v.failure) {
			return c.handleExhausted(ctx, v.failure, attempt, res, base)
		}
		if v.continues {
			if err := c.flushEvents(ctx); err != nil { // record each call's usage before the next call
				return Result{Interrupted: err}
			}
			c.round++
			c.req.Messages = base
			continue
		}
		c.addEvent(wire.EventEnvelopeRetryAttempted, retryPayload{
			NodeID: c.task.Input.NodeID, Attempt: attempt + 1, Reason: v.failure.reason, PreviousError: optional(v.failure.detail),
		})
		if err := c.flushEvents(ctx); err != nil { // record the retry before the call
			return Result{Interrupted: err}
		}
		c.prepareRetry(v.failure, base)
	}
}

// callOrdinal numbers a call among all calls of the node. Each answered clarification starts
// another emission. An emission can have one call more than attempts, for prose (OpenWOP host
// contract §5.5).
func (c *call) callOrdinal(n int) int { return n + len(c.task.Answered)*(c.maxAttempts+1) }

// prepareRetry prepares the next attempt. After a truncation it only raises the budget and drops
// any earlier correction. After any other failure it adds the correction at the same budget.
func (c *call) prepareRetry(f failure, base []provider.Message) {
	c.req.Messages = base
	if f.reason == reasonTruncation {
		c.req.MaxTokens = c.capTokens(c.req.MaxTokens * c.Loop.cfg.Multiplier)
		return
	}
	if text := f.correction(); text != "" {
		c.req.Messages = append(append([]provider.Message(nil), base...), userMessage(text))
	}
}

// verdict is the result of one answer: the end of the node, a further turn, or a failed attempt.
type verdict struct {
	done      *Result
	continues bool
	// failure also describes a turn that cannot continue because no attempt is left.
	failure failure
}

// judgeAnswer applies the truth table to one answer.
func (c *call) judgeAnswer(ctx context.Context, res provider.Result, attempt int) verdict {
	if !c.answerShown {
		c.drafts = append(c.drafts, c.usageDraft(res))
	}
	f, refused, failed := classify(res)
	switch {
	case refused:
		refusal, err := c.refusalDraft(ctx, res)
		if err != nil {
			return verdict{done: &Result{Interrupted: err}}
		}
		c.drafts = append(c.drafts, refusal)
		return c.failNode(&wire.NodeError{Code: string(fault.EnvelopeRefusal), Message: "the model refused to answer; refusals are not retried"})
	case failed:
		c.drafts = append(c.drafts, truncatedDraft(c.req, res, c.expected.containsDocument(res.Text)))
		return verdict{failure: f}
	}
	v := c.acceptAnswer(ctx, res, attempt)
	if v.done == nil && !v.continues {
		v.failure = contentFailure(res, v.failure)
		if v.failure.reason == reasonTruncation {
			c.drafts = append(c.drafts, truncatedDraft(c.req, res, c.expected.containsDocument(res.Text)))
		}
	}
	return v
}

// failNode fails the node with the events decided so far.
func (c *call) failNode(e *wire.NodeError) verdict {
	return verdict{done: &Result{Drafts: c.drafts, Err: e}}
}

func (c *call) completeNode(out node.Output) verdict {
	return verdict{done: &Result{Drafts: c.drafts, Output: out, Trust: wire.Trusted.Meet(c.task.Trust)}}
}

// callModel calls the model once. A failed call does not count as a failed attempt: it has no
// envelope event (OpenWOP envelope contract §14.1).
func (c *call) callModel(ctx context.Context) (provider.Result, *Result) {
	if ctx.Err() != nil { // the run ended between attempts
		return provider.Result{}, &Result{Interrupted: context.Cause(ctx)}
	}
	if err := replayguard.Check(ctx); err != nil {
		return provider.Result{}, c.unsentResult(err)
	}
	release, err := c.acquireSlot(ctx)
	if _, refused := provider.As(err); refused {
		return provider.Result{}, &Result{Drafts: c.drafts, Err: c.callFailure(err)}
	}
	if err != nil {
		return provider.Result{}, c.unsentResult(err)
	}
	out := limit.Outcome{Tokens: unreported, Aborted: true}
	defer func() { release(out) }()
	callCtx, cancel := context.WithTimeout(ctx, c.req.Timeouts.Call)
	defer cancel()
	emit, wait, closeStream, err := c.openStream(ctx)
	if err != nil {
		return provider.Result{}, c.unsentResult(err)
	}
	defer closeStream()
	req := c.req
	req.Traceparent = c.task.Trace.Call(c.task.Input.NodeID, c.task.Attempt, c.callsMade)
	req.InvocationID = InvocationID(c.task, c.ordinal, req.Provider+":"+req.Model)
	c.callsMade++
	began := c.deps.Clock()
	res, err := c.provider.Call(callCtx, req, c.boundAnswer(emit))
	if c.deps.OnCall != nil {
		c.deps.OnCall(req.Provider, c.deps.Clock().Sub(began))
	}
	out = c.limiterOutcome(ctx, res, err)
	if werr := wait(); werr != nil {
		return res, &Result{Interrupted: werr}
	}
	if ctx.Err() != nil {
		return res, &Result{Interrupted: context.Cause(ctx)}
	}
	if err != nil {
		return res, &Result{Drafts: c.drafts, Err: c.callFailure(err)}
	}
	return res, nil
}
