package model

import (
	"context"
	"encoding/json"
	"fmt"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/prompt"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// spec is what is settled before the first call of an emission. It does not change afterwards.
type spec struct {
	// task is the node's task. Its trust includes that of the prompt's sources.
	task     Task
	contract *workflow.EnvelopeContract
	provider provider.Provider
	// request is the request of the first call, with the expected schema; see inForm.
	request  provider.Request
	expected expectation
	// others are the models to call if the called one fails.
	others []modelgate.Model
	// schemaForms are the forms in which the schema can be sent, in the order in which they are tried.
	schemaForms []provider.SchemaVia
	// ceiling is the model's longest answer in tokens; 0 if unknown.
	ceiling int
	// chosenTurn is the form of the answer if the host chose it; empty if the node names it.
	chosenTurn string
	// streams means that the answer is recorded while it arrives, partials that so is its valid part.
	streams, partials bool
	// repairs means that broken JSON is repaired before the model is asked again.
	repairs bool
	// verbosity is how much of the model's thoughts is recorded.
	verbosity string
	// composition is the prompt from templates; nil without templates.
	composition *prompt.Composition
	// release frees the memory of the prompt's assets; call it after the last call.
	release func()
}

// prepare renders the prompt, resolves model, provider and key, adds the expected schema, and fits
// the request to the model and its vendor.
func (l *Loop) prepare(
	ctx context.Context, t Task, cfg config, limits Limits,
) (s spec, bad *wire.NodeError, err error) {
	var o overlay
	_ = strictjson.Read(t.Input.Configurable, &o) // checked at creation
	m, bad, err := l.newMaterial(ctx, t)
	if bad != nil || err != nil {
		return spec{}, bad, err
	}
	defer func() {
		if bad != nil || err != nil {
			m.assets.release()
		}
	}()
	composed, bad := l.composePrompt(t, m.in)
	if bad != nil {
		return spec{}, bad, nil
	}
	req, bad := cfg.newRequest(m, o, l.cfg.Defaults, composed)
	if bad != nil {
		return spec{}, bad, nil
	}
	req.Messages = append(req.Messages, clarificationMessages(t.Answered)...)
	req.Tenant = t.Tenant
	t.Trust = wire.Trusted.Meet(t.Trust).Meet(m.trust)
	if composed != nil {
		t.Trust = t.Trust.Meet(composed.Trust)
	}

	if bad := cfg.checkOthers(); bad != nil {
		return spec{}, bad, nil
	}
	own := modelgate.Model{Provider: req.Provider, Model: req.Model}
	to, bad, err := l.resolveTarget(ctx, t, cfg, o, l.orNext(own, cfg, t.Input.Next))
	if bad != nil || err != nil {
		return spec{}, bad, err
	}
	req.Provider, req.Model = to.model.Provider, to.model.Model
	req.Credential, req.Timeouts = to.key, to.timeouts
	s = spec{
		task:        t,
		contract:    cfg.contractOf(t),
		provider:    to.provider,
		streams:     cfg.streamsAnswer(t.TypeID),
		partials:    cfg.Partials,
		repairs:     cfg.RepairJSON,
		verbosity:   firstNonEmpty(o.Verbosity, thoughtsFull),
		composition: composed,
		release:     m.assets.release,
	}
	if len(o.MockProvider) == 0 || l.deps.Canned == nil {
		s.others = l.otherModels(cfg, own.Provider)
	}
	req.Thoughts = cfg.Thoughts && s.verbosity != thoughtsOff && s.streams

	if bad, err = l.chooseForm(ctx, cfg, &s, req, limits); err != nil {
		return spec{}, nil, err
	}
	return s, bad, nil
}

// chooseForm determines the expected answer and its form, and makes the request of the first call.
func (l *Loop) chooseForm(
	ctx context.Context, cfg config, s *spec, req provider.Request, limits Limits,
) (bad *wire.NodeError, err error) {
	if s.expected, bad, err = l.expect(ctx, s.task.TypeID, cfg); bad != nil || err != nil {
		return bad, err
	}
	forms, err := l.forms(ctx, cfg, s, req, limits)
	if err != nil {
		return nil, err
	}
	for _, build := range forms { // up to the first one that the vendor takes
		form, err := build()
		if err != nil {
			return nil, err
		}
		if bad = l.requestForm(s, req, form); bad == nil {
			break
		}
	}
	if s.chosenTurn != "" && s.expected.turn != nil {
		s.chosenTurn = formEnvelopes
	}
	return bad, nil
}

// chosenTurn returns the form of an answer that the host chooses, for an answer that is recorded already;
// empty if it chooses none now.
func (l *Loop) chosenTurn(ctx context.Context, t Task, cfg config, limits Limits) string {
	var o overlay
	_ = strictjson.Read(t.Input.Configurable, &o) // checked at creation
	m, bad := substitute(t, l.orNext(cfg.activeModel(o, l.cfg.Defaults), cfg, t.Input.Next))
	if bad != nil {
		return ""
	}
	s := spec{task: t, contract: cfg.contractOf(t)}
	if s.provider, m, bad = l.resolveProvider(m, o); bad != nil {
		return ""
	}
	req := provider.Request{Provider: m.Provider, Model: m.Model}
	if bad, err := l.chooseForm(ctx, cfg, &s, req, limits); bad != nil || err != nil {
		return ""
	}
	return s.chosenTurn
}

// form builds an expectation when it is tried: most vendors take the first one.
type form func() (expectation, error)

func ready(e expectation) form { return func() (expectation, error) { return e, nil } }

// forms returns the forms in which an answer can be requested, the preferred one first. The schema of an
// output is its author's, who can change it; those of envelopes are sent in words in the end. A vendor that
// has no room for rendering hints gets envelopes without them.
func (l *Loop) forms(
	ctx context.Context, cfg config, s *spec, req provider.Request, limits Limits,
) ([]form, error) {
	payload := s.expected
	switch {
	case payload.value != nil || payload.kind == "" && s.contract == nil:
		return []form{ready(payload)}, nil
	case cfg.Turn == formPayload || l.generatesMedia(payload.kind, modelgate.Model{Provider: req.Provider, Model: req.Model}):
		return []form{ready(payload), ready(payload.asWords())}, nil
	}
	if payload.kind != "" && cfg.Turn != formEnvelopes {
		s.chosenTurn = formPayload
	}
	_, strict := s.provider.(provider.Strict)
	strict = strict && !l.deps.Catalogue.WithoutSchema(req.Provider, req.Model)
	if !strict && cfg.Turn != formEnvelopes && payload.kind != "" {
		return []form{ready(payload)}, nil
	}
	turn, err := l.turn(ctx, payload, s.contract, limits, true)
	plain := func() (expectation, error) { return l.turn(ctx, payload, s.contract, limits, false) }
	switch {
	case err != nil || turn.turn == nil:
		return []form{ready(payload), ready(payload.asWords())}, err
	case payload.kind == "" || cfg.Turn == formEnvelopes:
		return []form{ready(turn), plain, ready(turn.asWords())}, nil
	}
	return []form{ready(turn), plain, ready(payload), ready(payload.asWords())}, nil
}

// turn returns the form of an answer that lists envelopes. rendered adds rendering hints.
func (l *Loop) turn(
	ctx context.Context, payload expectation, contract *workflow.EnvelopeContract, limits Limits, rendered bool,
) (expectation, error) {
	form, err := l.turnForm(ctx, payload.kind, contract, limits, rendered)
	if err != nil {
		return payload, err
	}
	payload.turn, payload.instruction, payload.reasons = form.schema, form.instruction, payload.reasons || form.reasons
	return payload, nil
}

// requestForm adds a form of the answer to the request of the first call. It fails if the vendor does
// not take its schema.
func (l *Loop) requestForm(s *spec, req provider.Request, form expectation) *wire.NodeError {
	req, ceiling := l.fitToModel(l.requestExpected(req, form))
	if form.inWords && len(req.Schema) > 0 {
		req.Via = looseForm(s.provider, req)
	}
	if _, _, bad := l.projectSchema(&s.task, s.provider, req); bad != nil {
		return bad
	}
	s.expected, s.ceiling, s.request = form, ceiling, req
	s.schemaForms = schemaFormsOf(s.provider, req)
	return nil
}

// target is where the calls of an emission go.
type target struct {
	provider provider.Provider
	model    modelgate.Model
	// key is the tenant's own key; empty uses the host's.
	key      provider.Secret
	timeouts provider.Timeouts
}

// resolveTarget resolves the model to call, with its provider, its key and its time limits. own is
// the model that the node, the run or the host names.
func (l *Loop) resolveTarget(
	ctx context.Context, t Task, cfg config, o overlay, own modelgate.Model,
) (to target, bad *wire.NodeError, err error) {
	if own, bad = substitute(t, own); bad != nil {
		return target{}, bad, nil
	}
	if to.provider, to.model, bad = l.resolveProvider(own, o); bad != nil {
		return target{}, bad, nil
	}
	if to.key, bad, err = l.registeredKey(ctx, t, to.model.Provider, o); bad != nil || err != nil {
		return target{}, bad, err
	}
	to.timeouts, bad = l.timeouts(cfg, to.model.Provider)
	return to, bad, nil
}

// resolveProvider returns the provider of a model. The provider of configurable.mockProvider
// replaces the model's.
func (l *Loop) resolveProvider(m modelgate.Model, o overlay) (provider.Provider, modelgate.Model, *wire.NodeError) {
	if len(o.MockProvider) > 0 && l.deps.Canned != nil {
		return l.cannedProvider(m, o.MockProvider)
	}
	p, ok := l.deps.Models.Lookup(m.Provider)
	if !ok {
		return nil, m, &wire.NodeError{
			Code:    string(fault.ProviderNotSupported),
			Message: fmt.Sprintf("no provider %q on this host; configured are %v", m.Provider, l.deps.Models.IDs()),
		}
	}
	if m.Model == "" {
		return nil, m, node.Invalid("/config/model: provider %q has no default model; "+
			"name one in the node's config or in configurable.ai.model", m.Provider)
	}
	return p, m, nil
}

// cannedProvider returns the provider that a specification describes.
func (l *Loop) cannedProvider(
	m modelgate.Model, specification json.RawMessage,
) (provider.Provider, modelgate.Model, *wire.NodeError) {
	p, err := l.deps.Canned(specification)
	if err != nil {
		return nil, m, node.Invalid("/configurable/mockProvider: %s", err)
	}
	return p, modelgate.Model{Provider: p.ID(), Model: firstNonEmpty(m.Model, p.ID())}, nil
}

// contractOf is the envelope contract of the task, else of the config; nil means none.
func (c config) contractOf(t Task) *workflow.EnvelopeContract {
	if t.Contract != nil {
		return t.Contract
	}
	return c.Contract
}

// streamsAnswer reports whether the answer is recorded while it arrives. The default is true for
// prompts and false for structured values.
func (c config) streamsAnswer(typeID string) bool {
	if c.ExpectsStreaming != nil {
		return *c.ExpectsStreaming
	}
	return typeID == node.TypeCallPrompt || c.Partials
}
