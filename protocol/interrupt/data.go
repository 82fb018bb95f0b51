package interrupt

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
)

// RuleQuorum is the rule of a Problem with votes that could never come to anything.
const RuleQuorum = "quorum"

// ProfileAuthRequired is what a gate names whose answers need a credential (OpenWOP
// host contract §6.5).
const ProfileAuthRequired = "openwop-interrupt-auth-required"

// artifactType is that of an approval which is about no artifact.
const artifactType = "approval"

// approvalData is what is shown of an approval (OpenWOP host contract §6.2). Members
// that the protocol does not know are left out.
type approvalData struct {
	ArtifactID        string          `json:"artifactId"`
	ArtifactType      string          `json:"artifactType"`
	Title             string          `json:"title"`
	Description       string          `json:"description,omitempty"`
	ArtifactData      json.RawMessage `json:"artifactData,omitempty"`
	Actions           []Action        `json:"actions"`
	RequiredApprovals whole           `json:"requiredApprovals,omitempty"`
	approvers
	// Audience is who is to be told: shown as it is, and of no effect here (RFC 0104).
	Audience               json.RawMessage `json:"audience,omitempty"`
	RejectionPolicy        Policy          `json:"rejectionPolicy,omitempty"`
	Override               *override       `json:"override,omitempty"`
	OverrideBypassesQuorum bool            `json:"overrideBypassesQuorum,omitempty"`
	Escalation             []level         `json:"escalation,omitempty"`
	Profile                string          `json:"profile,omitempty"`
}

// quorum is how many votes it takes; one, unless the gate says more.
func (d *approvalData) quorum() Quorum {
	q := Quorum{Required: max(1, int(d.RequiredApprovals)), Policy: d.RejectionPolicy, Bypassed: d.OverrideBypassesQuorum}
	if q.Policy != Majority {
		q.Policy = SingleVeto
	}
	return q
}

// readApproval fills in what the author left to the host.
func readApproval(at Place, below string, doc json.RawMessage, timeoutMs int64) (json.RawMessage, []workflow.Problem) {
	if wrong := misfits("approval", below, doc); len(wrong) > 0 {
		return nil, wrong
	}
	var d approvalData
	if err := strictjson.Read(doc, &d); err != nil {
		return nil, []workflow.Problem{{Path: below, Rule: workflow.RuleJSON, Message: err.Error()}}
	}
	if d.ArtifactID == "" {
		d.ArtifactID = at.RunID + ":" + at.NodeID
	}
	if d.ArtifactType == "" {
		d.ArtifactType = artifactType
	}
	if d.RejectionPolicy == "first" { // an alias that other hosts have
		d.RejectionPolicy = SingleVeto
	}
	if wrong := append(d.check(below), d.checkLevels(below, timeoutMs)...); len(wrong) > 0 {
		return nil, wrong
	}
	return strictjson.RenderPlain(d), nil
}

// check finds a quorum that nobody could reach.
func (d *approvalData) check(below string) (wrong []workflow.Problem) {
	all := d.eligible(len(d.Escalation))
	listed := slices.Compact(slices.Sorted(slices.Values(all.ApproversList)))
	if n := len(listed); n > 0 && n < int(d.RequiredApprovals) && !all.routed() { // how many a group has is not known
		wrong = append(wrong, workflow.Problem{
			Path: below + "/requiredApprovals", Rule: RuleQuorum,
			Message: fmt.Sprintf("only %d may approve, see approversList; name more of them or want fewer approvals", n),
		})
	}
	if d.RequiredApprovals > 1 && slices.Contains(d.Actions, EditAccept) {
		wrong = append(wrong, workflow.Problem{
			Path: below + "/actions", Rule: RuleQuorum,
			Message: "edit-accept takes one approval: who approved before has not seen the edited data; leave it out, or offer refine",
		})
	}
	if len(d.Actions) == 1 && d.Actions[0] == Ask {
		wrong = append(wrong, workflow.Problem{
			Path: below + "/actions", Rule: RuleQuorum, Message: "to ask leaves the gate closed; offer something that ends the wait, too",
		})
	}
	return wrong
}

// question is one of a clarification.
type question struct {
	ID       string          `json:"id"`
	Question string          `json:"question"`
	Schema   json.RawMessage `json:"schema,omitempty"`
}

type clarificationData struct {
	Questions   []question `json:"questions"`
	ContextType string     `json:"contextType,omitempty"`
}

// readClarification keeps of a document what a clarification shows, in its order.
func readClarification(_ Place, below string, doc json.RawMessage, _ int64) (json.RawMessage, []workflow.Problem) {
	if wrong := misfits("clarification", below, doc); len(wrong) > 0 {
		return nil, wrong
	}
	var d clarificationData
	if err := strictjson.Read(doc, &d); err != nil {
		return nil, []workflow.Problem{{Path: below, Rule: workflow.RuleJSON, Message: err.Error()}}
	}
	var wrong []workflow.Problem
	first := map[string]int{}
	for i, q := range d.Questions {
		path := below + "/questions/" + strconv.Itoa(i)
		if j, used := first[q.ID]; used {
			wrong = append(wrong, workflow.Problem{
				Path: path + "/id", Rule: workflow.RuleUnique,
				Message: "is that of question " + strconv.Itoa(j) + ", too; answers are told apart by it: give each its own",
			})
			continue
		}
		first[q.ID] = i
		if q.Schema != nil {
			wrong = append(wrong, schemaProblem(path+"/schema", q.Schema)...)
		}
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return strictjson.RenderPlain(d), nil
}

type externalData struct {
	EventType   string                     `json:"eventType"`
	Correlation map[string]json.RawMessage `json:"correlation"`
}

// matcher is what an event from outside must satisfy: each value of the correlation,
// deeply equal, numbers by value; other members are its own business.
func (d *externalData) matcher() (*schema.Schema, error) {
	type constant struct {
		Const json.RawMessage `json:"const"`
	}
	doc := struct {
		Required   []string            `json:"required"`
		Properties map[string]constant `json:"properties"`
	}{[]string{}, map[string]constant{}}
	for name, value := range d.Correlation {
		doc.Required = append(doc.Required, name)
		doc.Properties[name] = constant{value}
	}
	slices.Sort(doc.Required)
	return schema.Compile("correlation", strictjson.RenderPlain(doc))
}

func readExternal(_ Place, below string, doc json.RawMessage, _ int64) (json.RawMessage, []workflow.Problem) {
	if wrong := misfits("external-event", below, doc); len(wrong) > 0 {
		return nil, wrong
	}
	var d externalData
	if err := strictjson.Read(doc, &d); err != nil {
		return nil, []workflow.Problem{{Path: below, Rule: workflow.RuleJSON, Message: err.Error()}}
	}
	path := below + "/correlation"
	if len(d.Correlation) == 0 {
		return nil, []workflow.Problem{{Path: path, Rule: workflow.RuleRequired, Message: "any event would do; name a member, and the value by which the event is known"}}
	}
	if _, err := d.matcher(); err != nil {
		return nil, []workflow.Problem{{Path: path, Rule: workflow.RuleSchema, Message: "is too large, or holds a number out of bounds, to be compared; make it smaller"}}
	}
	return strictjson.RenderPlain(d), nil
}

// reader makes the data of a kind of what its author wrote, of a question that stands for
// some time; 0: as long as its run.
type reader func(at Place, below string, doc json.RawMessage, timeoutMs int64) (json.RawMessage, []workflow.Problem)

// readers are those of each kind.
var readers = map[Kind]reader{
	Approval: readApproval, Clarification: readClarification, ExternalEvent: readExternal,
	Custom: readCustom, LowConfidence: readConfidence,
}

// millis is a time of a config, in whole milliseconds; a part of one counts as one.
func millis(seconds float64) int64 { return int64(math.Ceil(seconds * 1000)) }
