package subscribe

import (
	"encoding/json"
	"fmt"
)

// CloudEvent is an event as CloudEvents 1.0 has it, in the JSON event format, with the
// attributes of three extensions: partitioning, sequence and distributed tracing.
type CloudEvent struct {
	SpecVersion string `json:"specversion"`
	// ID is the event's; together with Source it is unique.
	ID string `json:"id"`
	// Source is whose workflow the event comes from.
	Source string `json:"source"`
	Type   string `json:"type"`
	// Subject is the run.
	Subject         string `json:"subject"`
	Time            string `json:"time"`
	DataContentType string `json:"datacontenttype"`
	// PartitionKey is the run again: events of one partition keep their order.
	PartitionKey string `json:"partitionkey"`
	// Sequence is the event's, with zeros before it: it is compared as text.
	Sequence    string `json:"sequence"`
	TraceParent string `json:"traceparent,omitempty"`
	// Data is the event's document, as the host's API gives it.
	Data json.RawMessage `json:"data"`
}

// typePrefix begins the types of all events of the protocol.
const typePrefix = "dev.openwop."

// CloudEvent gives the event to those who speak CloudEvents.
func (e Event) CloudEvent() CloudEvent {
	return CloudEvent{
		SpecVersion: "1.0", ID: e.EventID, Source: "/tenants/" + e.Run.Tenant + "/workflows/" + e.Run.WorkflowID,
		Type: typePrefix + string(e.Type), Subject: e.RunID, Time: e.Timestamp, DataContentType: "application/json",
		PartitionKey: e.RunID, Sequence: fmt.Sprintf("%010d", e.Sequence), TraceParent: e.TraceParent, Data: e.AppendJSON(nil),
	}
}
