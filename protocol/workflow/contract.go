package workflow

import (
	"encoding/json"
	"slices"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// EnvelopeContract lists the envelope kinds that a node accepts in addition to the universal ones,
// and how it handles others (OpenWOP envelope contract §7).
type EnvelopeContract struct {
	Accepts []string `json:"accepts"`
	// RefusalMode is fail-node, discard-and-warn or empty, which is fail-node.
	RefusalMode string `json:"refusalMode"`
	// AlwaysAccepted documents the universal kinds; it has no effect.
	AlwaysAccepted []string `json:"alwaysAccepted"`
}

// Contract reads the node's contract; nil if none.
func (n *Node) Contract() (*EnvelopeContract, error) {
	if len(n.EnvelopeContract) == 0 {
		return nil, nil
	}
	c := &EnvelopeContract{}
	if err := strictjson.Read(n.EnvelopeContract, c); err != nil {
		return nil, err
	}
	return c, nil
}

// checkContract rejects a contract that is unreadable, which would accept nothing. It also rejects
// a node that requests a kind its own contract refuses: a request does not widen the contract
// (OpenWOP envelope contract §7).
func checkContract(n *Node, path string, found *problems) {
	at := path + "/envelopeContract"
	c, err := n.Contract()
	switch {
	case err != nil:
		found.add(at, RuleContract, "want accepts, a list of envelope kinds, and optionally refusalMode, a string")
		return
	case c == nil:
		return
	}
	if !slices.Contains([]wire.RefusalMode{"", wire.FailNode, wire.DiscardAndWarn}, wire.RefusalMode(c.RefusalMode)) {
		found.add(at+"/refusalMode", RuleContract, "want fail-node or discard-and-warn")
	}
	if members(n.EnvelopeContract)["accepts"] == nil {
		found.add(at+"/accepts", RuleContract, "a contract requires accepts, the kinds that the node accepts in addition to the universal ones; without a contract it accepts all")
		return
	}
	var asked string
	if json.Unmarshal(members(n.Config)["envelopeType"], &asked) != nil || asked == "" || wire.IsUniversal(asked) {
		return
	}
	if !slices.Contains(c.Accepts, asked) {
		found.add(path+"/config/envelopeType", RuleContract, "the node requests a kind that its envelopeContract does not accept; add the kind to accepts")
	}
}
