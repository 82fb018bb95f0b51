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

// checkContract rejects an invalid contract of a node.
func checkContract(n *Node, path string, found *problems) {
	if len(n.EnvelopeContract) == 0 {
		return
	}
	var asked string
	_ = json.Unmarshal(members(n.Config)["envelopeType"], &asked) // another type fails the node
	wrong, refuses := CheckContract(n.EnvelopeContract, asked)
	for _, p := range wrong {
		found.add(path+"/envelopeContract"+p.Path, p.Rule, p.Message)
	}
	if refuses {
		found.add(path+"/config/envelopeType", RuleContract, ContractRefuses)
	}
}

// ContractRefuses is the message about a node that requests a kind its own contract refuses: a request
// does not widen the contract (OpenWOP envelope contract §7).
const ContractRefuses = "the node requests a kind that its envelopeContract does not accept; add the kind to accepts"

// CheckContract returns the problems of a contract, with paths relative to it. One that is unreadable would
// accept nothing. refuses reports that it does not accept the kind that its node asks for; empty asks for
// none.
func CheckContract(contract json.RawMessage, asked string) (found []Problem, refuses bool) {
	c := &EnvelopeContract{}
	if err := strictjson.Read(contract, c); err != nil || strictjson.Object(contract) == nil {
		return []Problem{{Rule: RuleContract, Message: "want accepts, a list of envelope kinds, and optionally refusalMode, a string"}}, false
	}
	if !slices.Contains([]wire.RefusalMode{"", wire.FailNode, wire.DiscardAndWarn}, wire.RefusalMode(c.RefusalMode)) {
		found = append(found, Problem{Path: "/refusalMode", Rule: RuleContract, Message: "want fail-node or discard-and-warn"})
	}
	if members(contract)["accepts"] == nil {
		return append(found, Problem{
			Path: "/accepts", Rule: RuleContract,
			Message: "a contract requires accepts, the kinds that the node accepts in addition to the universal ones; without a contract it accepts all",
		}), false
	}
	return found, asked != "" && !wire.IsUniversal(asked) && !slices.Contains(c.Accepts, asked)
}
