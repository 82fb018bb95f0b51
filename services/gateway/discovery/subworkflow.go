package discovery

import dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"

// typeSubWorkflow is the node type that runs another workflow.
const typeSubWorkflow = "core.subWorkflow"

// subWorkflow advertises that a child's variables are seeded from its parent's.
type subWorkflow struct {
	InputMapping bool `json:"inputMapping"`
}

// subWorkflowOf returns nil if no node type runs another workflow.
func subWorkflowOf(can *dispatcherv1.DescribeResponse) *subWorkflow {
	for _, t := range can.GetNodeTypes() {
		if t.GetTypeId() == typeSubWorkflow {
			return &subWorkflow{InputMapping: true}
		}
	}
	return nil
}
