package subscribe

import (
	"encoding/json"
	"fmt"
)

// CloudEvent is an event in the JSON format of CloudEvents 1.0, with the attributes of three
// extensions: partitioning, sequence and distributed tracing.
type CloudEvent struct {
	SpecVersion string `json:"specversion"`
	// ID is the event's id; together with Source it is unique.
	ID string `json:"id"`
	// Source identifies the workflow.
	Source string `json:"source"`
	Type   string `json:"type"`
	// Subject is the run.
	Subject         string `json:"subject"`
	Time            string `json:"time"`
	DataContentType string `json:"datacontenttype"`
	// PartitionKey is the run: events of one partition keep their order.
	PartitionKey string `json:"partitionkey"`
	// Sequence is zero-padded, because it is compared as text.
	Sequence    string `json:"sequence"`
	TraceParent string `json:"traceparent,omitempty"`
	// Data is the event's document, as in the REST API.
	Data json.RawMessage `json:"data"`
}

// typePrefix is the prefix of all event types of the protocol.
const typePrefix = "dev.openwop."

// CloudEvent converts the event to CloudEvents.
func (e Event) CloudEvent() CloudEvent {
	return CloudEvent{
		SpecVersion: "1.0", ID: e.EventID, Source: "/tenants/" + e.Run.Tenant + "/workflows/" + e.Run.WorkflowID,
		Type: typePrefix + string(e.Type), Subject: e.RunID, Time: e.Timestamp, DataContentType: "application/json",
		PartitionKey: e.RunID, Sequence: fmt.Sprintf("%010d", e.Sequence), TraceParent: e.TraceParent, Data: e.AppendJSON(nil),
	}
}
