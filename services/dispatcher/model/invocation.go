package model

import "waybill.dev/waybill/services/dispatcher/node"

// InvocationID is the idempotency key of a call of a task; see node.InvocationID.
func InvocationID(t Task, ordinal int, peer string) string {
	return node.InvocationID(t.Tenant, t.RunID, t.Input.NodeID, ordinal, peer)
}
