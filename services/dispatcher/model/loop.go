// Package model asks a model until its answer is complete, and takes the
// answer in.
//
// One loop owns every retry of an emission: ask, classify how the model
// stopped, find the document, let the accept pipeline (or the node's output
// schema) judge it; a failed attempt is answered with more room if it was cut
// off, with the validator's words if it was wrong, and with nothing if the model
// refused. Transport errors are not its business: they belong to the node's
// retry policy. (OpenWOP envelope contract §14.)
package model

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/projection"
	"waybill.dev/waybill/protocol/runspan"
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
	// Multiplier is by how much the output budget grows after a truncation.
	Multiplier int
	Defaults   Defaults
	// Timeout limits a call where neither the node nor the provider's settings do.
	Timeout time.Duration
	// Providers are the operator's settings of providers; nil uses the defaults.
	Providers *limit.All
	// Directive is how strongly models are asked to reason; empty: advisory.
	Directive Directive
	// TrustsUnknown dispatches to models of which it is not known whether they have what
	// is required.
	TrustsUnknown bool
	// BYOK are the providers that take a tenant's own key.
	BYOK []string
	// TenantKeyed are those of them that the host itself has no key for.
	TenantKeyed []string
	// HidesFallback reports whether readers of a tenant's runs are not told which model
	// was asked instead of another; nil: they are.
	HidesFallback func(tenant string) bool
	// WithholdsRefusals records no word of a refusal; else it is recorded without
	// secrets and without words of the prompt.
	WithholdsRefusals bool
}

// Deps are the loop's collaborators.
type Deps struct {
	Models Models
	// Catalogue says what models can do; nil: the built-in one.
	Catalogue *catalogue.Catalogue
	// Logger is told what the gate decides; nil: nobody is.
	Logger  *slog.Logger
	Schemas Schemas
	// Scrubber of a run; registered: it refuses while the run is not registered.
	Scrubber func(tenant, runID string, registered bool) Scrubber
	Prompts  Prompts
	// Keys are those that tenants bring; nil: none.
	Keys Keys
	// Policies say who may ask which models; nil: everybody may ask all.
	Policies *Policies
	Clock    func() time.Time
	// OnCall is told of each call of a model that went out, and how long it took; nil:
	// nobody is.
	OnCall func(provider string, took time.Duration)
	// Limiter admits calls; nil admits all.
	Limiter *limit.Limiter
	// OnRefused is called when a provider had no capacity for a call; nil disables it.
	OnRefused func(provider string)
	// Jitter chooses a duration in [0, limit); nil uses a random one.
	Jitter func(limit time.Duration) time.Duration
	// Canned makes the provider of a run-level configurable.mockProvider; nil
	// when test seams are off.
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
	// Clarifications is how many clarification requests of the node were accepted before.
	Clarifications int
	// Waits counts how often in a row the node's model had no capacity before.
	Waits int
	// Answered are the questions of the node's model that were answered, in order.
	Answered []Answered
	// Fallback is the model that the gate put in the place of the node's own; nil: none.
	// Where the log does not tell its names, Needs does.
	Fallback *modelgate.Model
	Needs    *modelgate.Needs
	// CredentialRef names the tenant's own key; empty: the host's is used.
	CredentialRef string
	// Replay: the run replays another one, and nothing of it may reach anybody outside.
	Replay bool
	// Trace joins the run's trace.
	Trace runspan.Context
	// Recorded maps a correlationId to the envelope that is in the log for it
	// already: the run was taken over after the answer, or a part of it, was recorded.
	Recorded map[string]Recorded
	// Retries are further calls of this emission that the log announces: the run was
	// taken over while it was under way.
	Retries []Retry
	// Announced is the sequence of the last of these; 0: there is none.
	Announced int
	// Composed is what the log has of the attempt's prompt; nil: nothing.
	Composed *runstate.Prompt
}

// Answered is a question of a model's, and what somebody answered.
type Answered struct{ Question, Answer json.RawMessage }

// Recorded is an accepted envelope found in the log.
type Recorded struct {
	Kind       string
	EnvelopeID string
	Payload    json.RawMessage
	// Sequence is that of the event that records it.
	Sequence int
	// Answer says which part of the model's answer it is.
	Answer wire.AnswerPart
}

// Result ends a node: drafts to append before its end, then outputs or an error.
type Result struct {
	Drafts []wire.Draft
	Output node.Output
	Trust  wire.Trust
	// Err fails the node.
	Err *wire.NodeError
	// Waits says that the node goes on once its model's questions are answered.
	Waits bool
	// Interrupted says that the work could not be carried out here and now; the
	// run is handed out again and nothing of the node's is lost.
	Interrupted error
	// Unsent says with Interrupted that no call was sent: to begin again repeats nothing.
	Unsent bool
}

// Run executes a model node.
func (l *Loop) Run(ctx context.Context, t Task, j Journal) Result {
	c, bad, err := l.newCall(ctx, t, j)
	if bad != nil || err != nil {
		return Result{Err: bad, Interrupted: err, Unsent: err != nil}
	}
	if res, ok := c.resultFromLog(); ok { // whoever would be asked now, and with which key
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

// markUntrusted marks events as what they are made of: they tell of an answer to the
// prompt, and can repeat some of it.
func (c *call) markUntrusted(drafts []wire.Draft) {
	if c.task.Trust != wire.Untrusted {
		return
	}
	for i := range drafts {
		drafts[i].Trust = wire.Untrusted
	}
}

// newCall reads what the node and the host say of the emission.
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

// prepareRequest makes the prompt, and finds the model that is asked, its provider and the key.
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
	if c.provider, bad = c.Loop.resolveProvider(&c.req, o); bad != nil {
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

// fitRequest makes the request one that the model and its vendor take.
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
	// authorSystem is the system text as the node's author has it, before the host's hint.
	authorSystem string
	limits       Limits
	maxAttempts  int
	// verbosity is how much of the model's thoughts is shown.
	verbosity string
	// ceiling is the longest answer that the model can give, in tokens; 0: unknown.
	ceiling int
	// projection is set while the model is told the schema in its vendor's words.
	projection *projection.Projection
	expected   expectation
	// round is how many turns of this emission went by in talk about schemas.
	round int
	// addedSchemas are the kinds whose schemas are in the model's context.
	addedSchemas []string
	// callsMade counts the calls of the model that were made here, ordinal all of the
	// emission's before this one, whoever made them.
	callsMade, ordinal int
	// answerShown says that the answer which is asked for has been shown, and its usage told: it is
	// asked for once more.
	answerShown bool
	// drafts are events decided and not yet appended: they go with the next frame.
	drafts []wire.Draft
}

// runAttempts asks until the answer is taken, refused, or no attempt is left.
func (c *call) runAttempts(ctx context.Context) Result {
	base := c.req.Messages
	attempt, err := c.resume(ctx, base)
	switch {
	case err != nil:
		return Result{Interrupted: err}
	case c.reformatPending():
		return c.repeatReformat(ctx, attempt, base)
	case attempt > c.maxAttempts: // the executor was lost before it could say that none is left
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
			if err := c.flushEvents(ctx); err != nil { // each call's usage is recorded before the next goes out
				return Result{Interrupted: err}
			}
			c.round++
			c.req.Messages = base
			continue
		}
		c.addEvent(wire.EventEnvelopeRetryAttempted, retryPayload{
			NodeID: c.task.Input.NodeID, Attempt: attempt + 1, Reason: v.failure.reason, PreviousError: optional(v.failure.detail),
		})
		if err := c.flushEvents(ctx); err != nil { // recorded before the call goes out
			return Result{Interrupted: err}
		}
		c.prepareRetry(v.failure, base)
	}
}

// callOrdinal counts a call of this emission among all that the node makes: each answer is followed
// by another emission, and each emission can have one call more than attempts, for prose
// (OpenWOP host contract §5.5).
func (c *call) callOrdinal(n int) int { return n + len(c.task.Answered)*(c.maxAttempts+1) }

// prepareRetry prepares the next attempt: more room after a truncation and nothing else,
// not even the correction that the truncated attempt had; the correction after
// anything else, at the same budget.
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

// verdict is the end of the node, a turn that another one follows, or a failed
// attempt.
type verdict struct {
	done      *Result
	continues bool
	// failure is also what a turn that could go on came to if no attempt is left.
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
		told, err := c.refusalDraft(ctx, res)
		if err != nil {
			return verdict{done: &Result{Interrupted: err}}
		}
		c.drafts = append(c.drafts, told)
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

// failNode fails the node; what was decided so far goes with it.
func (c *call) failNode(e *wire.NodeError) verdict {
	return verdict{done: &Result{Drafts: c.drafts, Err: e}}
}

func (c *call) completeNode(out node.Output) verdict {
	return verdict{done: &Result{Drafts: c.drafts, Output: out, Trust: wire.Trusted.Meet(c.task.Trust)}}
}

// callModel calls the model once. A failed call is no failed attempt: it carries no
// envelope event (OpenWOP envelope contract §14.1).
func (c *call) callModel(ctx context.Context) (provider.Result, *Result) {
	if ctx.Err() != nil { // the run ended between two attempts
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
