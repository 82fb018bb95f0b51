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

// answerPath is the member of the request body to which error paths refer.
const answerPath = "/resumeValue"

// valueLimits limits a resume value; the gateway's own limits apply first. One append records the
// answer up to four times: in interrupt.resolved, in the older event of its kind, in node.resumed
// and as the node's outputs, which may be nested 100 levels deep.
var valueLimits = strictjson.Limits{MaxBytes: 3 << 19, MaxDepth: 100}

// Decide evaluates an answer to an open interrupt (OpenWOP host contract §6.4, from expiry to the
// trust gate). It changes nothing: the caller records the decision, once. Each of these errors
// leaves the interrupt open: fault.InterruptExpired, fault.Forbidden, fault.PayloadTooLarge,
// fault.ValidationError, fault.CorrelationMismatch, fault.UntrustedBlocksApproval.
func Decide(p *Pending, a Answer) (Decision, error) {
	if p.Expired(a.At) {
		return Decision{}, fault.New(fault.InterruptExpired, "the time limit for an answer has passed")
	}
	if len(a.Value) > valueLimits.MaxBytes {
		return Decision{}, fault.New(fault.PayloadTooLarge, "%s: has %d bytes of JSON, limit is %d; upload the large part elsewhere and send its URL",
			answerPath, len(a.Value), valueLimits.MaxBytes)
	}
	if wrong := checkJSON(a.Value); wrong != nil {
		return Decision{}, invalid(wrong)
	}
	d, err := p.judge(a)
	if err != nil {
		return Decision{}, err
	}
	if p.Kind.ratifies() && a.Trust == wire.Untrusted {
		return Decision{}, approval.OfEnvelope(a.Trust) // OpenWOP host contract §6.6
	}
	d.Trust = lowered(p.Trust.Meet(a.Trust))
	d.Events = d.overrideEvents()
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
		if wrong := p.checkForm(a.Value); len(wrong) > 0 {
			return Decision{}, invalid(wrong)
		}
		if err := p.satisfies(a.Value); err != nil {
			return Decision{}, err
		}
		return a.advance(a.Value), nil
	}
}

// advance returns the decision of an answer that completes the node.
func (a Answer) advance(resume json.RawMessage) Decision {
	return Decision{Outcome: Advanced, Resume: compact(resume), DecidedBy: a.By.name()}
}

// name returns the recorded identity if the answer names no other.
func (r Responder) name() string { return cmp.Or(r.User, r.Principal) }

// satisfies validates a value against the resumeSchema (OpenWOP host contract §6.1).
func (p *Pending) satisfies(value json.RawMessage) error {
	if p.ResumeSchema == nil {
		return nil
	}
	compiled, err := schema.Compile("resumeSchema", p.ResumeSchema)
	if err != nil { // it compiled when the run was created
		return fault.New(fault.InternalError, "the interrupt's resumeSchema cannot be applied").Wrap(err)
	}
	if wrong := violations(answerPath, compiled.Validate(value)); len(wrong) > 0 {
		return invalid(wrong)
	}
	return nil
}

// judgeEvent accepts an event that holds every member of the correlation; other members are
// ignored. The error reveals neither the expected values nor the differing member: otherwise a
// caller could guess the values one by one (OpenWOP host contract §6.1).
func (p *Pending) judgeEvent(a Answer) (Decision, error) {
	if err := p.satisfies(a.Value); err != nil {
		return Decision{}, err
	}
	if strictjson.Object(a.Value) == nil {
		return Decision{}, invalid([]workflow.Problem{{Path: answerPath, Rule: "type", Message: "want an object with the correlation members"}})
	}
	var d externalData
	if err := p.readData(&d); err != nil {
		return Decision{}, err
	}
	matcher, err := d.matcher()
	if err != nil {
		return Decision{}, fault.New(fault.InternalError, "the interrupt's correlation cannot be compared").Wrap(err)
	}
	if len(matcher.Validate(a.Value)) > 0 {
		return Decision{}, fault.New(fault.CorrelationMismatch, "the run waits for an event of type %q with other correlation values; send one that matches the run's correlation", d.EventType)
	}
	return a.advance(a.Value), nil
}

// Redelivered reports whether an external event is a redelivery of the one that resolved the
// interrupt: correlationId and eventId are equal (OpenWOP host contract §6.1).
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

// invalid returns the error for a rejected answer.
func invalid(wrong []workflow.Problem) *fault.Error {
	return fault.New(fault.ValidationError, "%s: %s", wrong[0].Path, wrong[0].Message).With("problems", workflow.AsDetails(wrong))
}

// checkJSON finds invalid or oversized JSON.
func checkJSON(value json.RawMessage) []workflow.Problem {
	err := strictjson.Check(value, valueLimits)
	if err == nil {
		return nil
	}
	p := workflow.Problem{Path: answerPath, Rule: workflow.RuleJSON, Message: err.Error()}
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		p.Path, p.Message = answerPath+e.Path, e.Reason
	}
	return []workflow.Problem{p}
}

// stringValue returns a JSON string; empty if the value is anything else.
func stringValue(value json.RawMessage) string {
	var s string
	_ = json.Unmarshal(value, &s) // absent, or another type
	return s
}

func compact(value json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return value
	}
	return b.Bytes()
}

// readData reads the interrupt's own data into target.
func (p *Pending) readData(target any) error {
	if err := strictjson.Read(p.Data, target); err != nil {
		return fault.New(fault.InternalError, "the interrupt's data is unreadable").Wrap(err)
	}
	return nil
}
