package discovery

// interruptBlock describes how approvals find their approvers (RFC 0104).
type interruptBlock struct {
	ApproverRouting approverRouting `json:"approverRouting"`
}

// approverRouting has no member audience: questions are delivered to the run's callbackUrl
// and the tenant's webhooks, regardless of the gate.
type approverRouting struct {
	Supported bool     `json:"supported"`
	RefKinds  []string `json:"refKinds"`
}

// interruptOf lists the memberships that keys can have (auth.Spec).
func interruptOf() interruptBlock {
	return interruptBlock{approverRouting{Supported: true, RefKinds: []string{"group", "role"}}}
}
