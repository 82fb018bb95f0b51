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

// RuleQuorum is the rule of a Problem with a quorum that is unreachable.
const RuleQuorum = "quorum"

// ProfileAuthRequired is the profile of a gate whose answers require a credential (OpenWOP host
// contract §6.5).
const ProfileAuthRequired = "openwop-interrupt-auth-required"

// artifactType is the default for an approval without an artifact.
const artifactType = "approval"

// approvalData is the data of an approval (OpenWOP host contract §6.2). Members unknown to the
// protocol are dropped.
type approvalData struct {
	ArtifactID        string          `json:"artifactId"`
	ArtifactType      string          `json:"artifactType"`
	Title             string          `json:"title"`
	Description       string          `json:"description,omitempty"`
	ArtifactData      json.RawMessage `json:"artifactData,omitempty"`
	Actions           []Action        `json:"actions"`
	RequiredApprovals integer         `json:"requiredApprovals,omitempty"`
	approvers
	// Audience lists the people to notify: displayed unchanged, ignored by this host (RFC 0104).
	Audience               json.RawMessage `json:"audience,omitempty"`
	RejectionPolicy        Policy          `json:"rejectionPolicy,omitempty"`
	Override               *override       `json:"override,omitempty"`
	OverrideBypassesQuorum bool            `json:"overrideBypassesQuorum,omitempty"`
	Escalation             []level         `json:"escalation,omitempty"`
	Profile                string          `json:"profile,omitempty"`
	// BulkAnswers is an extension: the console may accept or reject the question together with others,
	// without opening it.
	BulkAnswers bool `json:"bulkAnswers,omitempty"`
}

// quorum returns the required votes; one by default.
func (d *approvalData) quorum() Quorum {
	q := Quorum{Required: max(1, int(d.RequiredApprovals)), Policy: d.RejectionPolicy, Bypassed: d.OverrideBypassesQuorum}
	if q.Policy != Majority {
		q.Policy = SingleVeto
	}
	return q
}

// readApproval validates the data and fills in defaults.
func readApproval(at Origin, below string, doc json.RawMessage, timeoutMs int64) (json.RawMessage, []workflow.Problem) {
	if wrong := checkShape("approval", below, doc); len(wrong) > 0 {
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
	if d.RejectionPolicy == "first" { // an alias used by other hosts
		d.RejectionPolicy = SingleVeto
	}
	if wrong := append(d.check(below), d.checkLevels(below, timeoutMs)...); len(wrong) > 0 {
		return nil, wrong
	}
	return strictjson.RenderPlain(d), nil
}

// check finds an unreachable quorum.
func (d *approvalData) check(below string) (wrong []workflow.Problem) {
	all := d.eligible(len(d.Escalation))
	listed := slices.Compact(slices.Sorted(slices.Values(all.ApproversList)))
	if n := len(listed); n > 0 && n < int(d.RequiredApprovals) && !all.routed() { // the size of a group is unknown
		wrong = append(wrong, workflow.Problem{
			Path: below + "/requiredApprovals", Rule: RuleQuorum,
			Message: fmt.Sprintf("approversList names only %d; add approvers or lower requiredApprovals", n),
		})
	}
	if d.RequiredApprovals > 1 && slices.Contains(d.Actions, EditAccept) {
		wrong = append(wrong, workflow.Problem{
			Path: below + "/actions", Rule: RuleQuorum,
			Message: "edit-accept is not possible with several approvals: earlier approvers have not seen the edited data; remove it or offer refine",
		})
	}
	if len(d.Actions) == 1 && d.Actions[0] == Ask {
		wrong = append(wrong, workflow.Problem{
			Path: below + "/actions", Rule: RuleQuorum, Message: "ask does not end the wait; offer another action as well",
		})
	}
	return wrong
}

// question is one question of a clarification.
type question struct {
	ID       string          `json:"id"`
	Question string          `json:"question"`
	Schema   json.RawMessage `json:"schema,omitempty"`
}

type clarificationData struct {
	Questions   []question `json:"questions"`
	ContextType string     `json:"contextType,omitempty"`
}

// readClarification validates the data and keeps its known members, in order.
func readClarification(_ Origin, below string, doc json.RawMessage, _ int64) (json.RawMessage, []workflow.Problem) {
	if wrong := checkShape("clarification", below, doc); len(wrong) > 0 {
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
				Message: "is already the id of question " + strconv.Itoa(j) + "; ids must be unique",
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

// matcher returns the schema of a matching external event: it has every value of the correlation,
// deeply equal, numbers compared by value. Other members are ignored.
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

func readExternal(_ Origin, below string, doc json.RawMessage, _ int64) (json.RawMessage, []workflow.Problem) {
	if wrong := checkShape("external-event", below, doc); len(wrong) > 0 {
		return nil, wrong
	}
	var d externalData
	if err := strictjson.Read(doc, &d); err != nil {
		return nil, []workflow.Problem{{Path: below, Rule: workflow.RuleJSON, Message: err.Error()}}
	}
	path := below + "/correlation"
	if len(d.Correlation) == 0 {
		return nil, []workflow.Problem{{Path: path, Rule: workflow.RuleRequired, Message: "any event would match; name at least one member and its value"}}
	}
	if _, err := d.matcher(); err != nil {
		return nil, []workflow.Problem{{Path: path, Rule: workflow.RuleSchema, Message: "is too large to compare, or holds a number out of bounds; make it smaller"}}
	}
	return strictjson.RenderPlain(d), nil
}

// reader validates an author's config and returns the data of the interrupt. timeoutMs is the
// question's time limit; 0 means the run's.
type reader func(at Origin, below string, doc json.RawMessage, timeoutMs int64) (json.RawMessage, []workflow.Problem)

var readers = map[Kind]reader{
	Approval: readApproval, Clarification: readClarification, ExternalEvent: readExternal,
	Custom: readCustom, LowConfidence: readConfidence,
}

// millis converts seconds to milliseconds, rounded up.
func millis(seconds float64) int64 { return int64(math.Ceil(seconds * 1000)) }
