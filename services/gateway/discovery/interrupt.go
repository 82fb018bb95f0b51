package discovery

// interruptBlock says how approvals find those who may give them (RFC 0104).
type interruptBlock struct {
	ApproverRouting approverRouting `json:"approverRouting"`
}

// approverRouting has no member audience: who is told of a question is its run's
// callbackUrl and the tenant's webhooks, whatever the gate says.
type approverRouting struct {
	Supported bool     `json:"supported"`
	RefKinds  []string `json:"refKinds"`
}

// interruptOf names what keys can belong to (auth.Spec).
func interruptOf() interruptBlock {
	return interruptBlock{approverRouting{Supported: true, RefKinds: []string{"group", "role"}}}
}
