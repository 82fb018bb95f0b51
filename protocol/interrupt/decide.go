package interrupt

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"

	"waybill.dev/waybill/protocol/approval"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// answered is the member of a request's body that paths in errors lead into.
const answered = "/resumeValue"

// valueLimits bound a resume value; those of the edge come first. A run tells an answer up to
// four times, at once: in interrupt.resolved, in the older event of its kind, in node.resumed
// and as the node's outputs, which may be nested 100 levels deep.
var valueLimits = strictjson.Limits{MaxBytes: 3 << 19, MaxDepth: 100}

// Decide judges an answer to an open interrupt (OpenWOP host contract §6.4, from
// expiry to the gate of trust). It changes nothing: the caller records what it says,
// once. Errors, each of which leaves the interrupt open: fault.InterruptExpired,
// fault.Forbidden, fault.PayloadTooLarge, fault.ValidationError, fault.CorrelationMismatch,
// fault.UntrustedBlocksApproval.
func Decide(p *Pending, a Answer) (Decision, error) {
	if p.Expired(a.At) {
		return Decision{}, fault.New(fault.InterruptExpired, "the time for an answer is over")
	}
	if len(a.Value) > valueLimits.MaxBytes {
		return Decision{}, fault.New(fault.PayloadTooLarge, "%s: has %d bytes of JSON; an answer may have %d: put the large part where it can be named by a URL",
			answered, len(a.Value), valueLimits.MaxBytes)
	}
	if wrong := unsound(a.Value); wrong != nil {
		return Decision{}, refuse(wrong)
	}
	d, err := p.judge(a)
	if err != nil {
		return Decision{}, err
	}
	if p.Kind.ratifies() && a.Trust == wire.Untrusted {
		return Decision{}, approval.OfEnvelope(a.Trust) // OpenWOP host contract §6.6
	}
	d.Trust = lowered(p.Trust.Meet(a.Trust))
	d.Events = d.overrode()
	if d.Outcome.Resolves() {
		d.Events = append(d.Events, p.resolved(&d, a.At)...)
	}
	return d, nil
}

func (p *Pending) judge(a Answer) (Decision, error) {
	switch p.Kind {
	case Approval:
		return p.judgeApproval(a)
	case Clarification:
		return p.judgeClarification(a)
	case ExternalEvent:
		return p.judgeEvent(a)
	default:
		if wrong := p.unfilled(a.Value); len(wrong) > 0 {
			return Decision{}, refuse(wrong)
		}
		if err := p.satisfies(a.Value); err != nil {
			return Decision{}, err
		}
		return a.advance(a.Value), nil
	}
}

// advance is the decision of an answer that needs nothing more.
func (a Answer) advance(resume json.RawMessage) Decision {
	return Decision{Outcome: Advanced, Resume: compact(resume), DecidedBy: a.By.name()}
}

// name is who is recorded when an answer does not say more.
func (r Responder) name() string { return cmp.Or(r.User, r.Principal) }

// satisfies holds a value against the resumeSchema (OpenWOP host contract §6.1).
func (p *Pending) satisfies(value json.RawMessage) error {
	if p.ResumeSchema == nil {
		return nil
	}
	compiled, err := schema.Compile("resumeSchema", p.ResumeSchema)
	if err != nil { // it could be applied when the run was created
		return fault.New(fault.InternalError, "the interrupt's resumeSchema cannot be applied").Wrap(err)
	}
	if wrong := violations(answered, compiled.Validate(value)); len(wrong) > 0 {
		return refuse(wrong)
	}
	return nil
}

// judgeEvent takes what holds every member of the correlation; other members are the
// event's own. What was expected is told to nobody, nor which member is another: that
// would let somebody find the values one by one (OpenWOP host contract §6.1).
func (p *Pending) judgeEvent(a Answer) (Decision, error) {
	if err := p.satisfies(a.Value); err != nil {
		return Decision{}, err
	}
	if strictjson.Object(a.Value) == nil {
		return Decision{}, refuse([]workflow.Problem{{Path: answered, Rule: "type", Message: "want an object, with the members by which the event is known"}})
	}
	var d externalData
	if err := strictjson.Read(p.Data, &d); err != nil {
		return Decision{}, fault.New(fault.InternalError, "the interrupt's data cannot be read").Wrap(err)
	}
	matcher, err := d.matcher()
	if err != nil {
		return Decision{}, fault.New(fault.InternalError, "the interrupt's correlation cannot be compared").Wrap(err)
	}
	if len(matcher.Validate(a.Value)) > 0 {
		return Decision{}, fault.New(fault.CorrelationMismatch, "the run waits for another event of type %q: send one whose correlation members have the values that the run was given", d.EventType)
	}
	return a.advance(a.Value), nil
}

// Redelivered reports whether an event from outside is the one that an interrupt was
// resolved with, sent again: both name the same correlationId and eventId (OpenWOP host
// contract §6.1).
func Redelivered(resume, value json.RawMessage) bool {
	type delivery struct{ CorrelationID, EventID string }
	read := func(v json.RawMessage) (d delivery, ok bool) {
		m := strictjson.Object(v)
		ok = json.Unmarshal(m["correlationId"], &d.CorrelationID) == nil && json.Unmarshal(m["eventId"], &d.EventID) == nil
		return d, ok && d.CorrelationID != "" && d.EventID != ""
	}
	first, ok1 := read(resume)
	again, ok2 := read(value)
	return ok1 && ok2 && first == again
}

// refuse says what is wrong with an answer.
func refuse(wrong []workflow.Problem) *fault.Error {
	return fault.New(fault.ValidationError, "%s: %s", wrong[0].Path, wrong[0].Message).With("problems", workflow.AsDetails(wrong))
}

// unsound finds what is no JSON, or too much of it.
func unsound(value json.RawMessage) []workflow.Problem {
	err := strictjson.Check(value, valueLimits)
	if err == nil {
		return nil
	}
	p := workflow.Problem{Path: answered, Rule: workflow.RuleJSON, Message: err.Error()}
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		p.Path, p.Message = answered+e.Path, e.Reason
	}
	return []workflow.Problem{p}
}

// text is a value that is a text; empty: it is none.
func text(value json.RawMessage) string {
	var s string
	_ = json.Unmarshal(value, &s) // nothing, or another type
	return s
}

func compact(value json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return value
	}
	return b.Bytes()
}
