package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// checkContracts checks the kinds that a node requests and accepts.
func (l *linter) checkContracts(n *workflow.Node, t node.Type, at string) {
	if n.EnvelopeContract != nil && !t.EmitsEnvelopes {
		l.warn(at+"/envelopeContract", RuleNoEffect, "nodes of type %s emit no envelopes; remove the contract", n.TypeID)
	}
	var c struct {
		Kind     json.RawMessage `json:"envelopeType"`
		Contract json.RawMessage `json:"envelopeContract"`
	}
	if t.AsksModel() && strictjson.Read(n.Config, &c) == nil {
		if kind, ok := strictjson.String(c.Kind); ok {
			l.checkKind(kind, at+"/config/envelopeType")
		}
		l.checkAccepted(c.Contract, at+"/config/envelopeContract")
		if c.Contract != nil && n.EnvelopeContract != nil {
			l.warn(at+"/config/envelopeContract", RuleNoEffect, "the node's own envelopeContract is used; keep one of the two")
		}
	}
	l.checkAccepted(n.EnvelopeContract, at+"/envelopeContract")
}

func (l *linter) checkAccepted(contract json.RawMessage, at string) {
	var c struct {
		Accepts []json.RawMessage `json:"accepts"`
	}
	if len(contract) == 0 || strictjson.Read(contract, &c) != nil {
		return
	}
	if c.Accepts != nil && len(c.Accepts) == 0 {
		l.warn(at+"/accepts", RuleNoEffect, "accepts no kind, so every answer but those of the protocol is refused; name kinds, or remove the contract")
	}
	for i, raw := range c.Accepts {
		if kind, ok := strictjson.String(raw); ok {
			l.checkKind(kind, fmt.Sprintf("%s/accepts/%d", at, i))
		}
	}
}

// coreKinds are the content kinds of the protocol.
var coreKinds = []string{"media.image", "media.audio", "media.file", "ui.a2ui-surface"}

// checkKind finds kinds that no host has, or this one does not have.
func (l *linter) checkKind(kind, path string) {
	protocol := append(wire.Universals(), coreKinds...)
	if kind == "" || slices.Contains(protocol, kind) || slices.Contains(l.Kinds, kind) {
		return
	}
	known := append(slices.Clone(l.Kinds), protocol...)
	switch {
	case !pack.VendorKind(kind):
		l.problem(path, RuleKind, "no host has this kind%s; kinds of your own have names of the form vendor.<host>.<kind>, those of the protocol are %s",
			meant(kind, known), strings.Join(protocol, ", "))
	case l.Kinds == nil:
	case l.Complete:
		l.problem(path, RuleKind, "this host does not have the kind%s; add its schema to the folder of --kinds, or a pack with it to that of --packs", meant(kind, known))
	default:
		l.warn(path, RuleKind, "the kind is not among those given%s; name the folder with its schema with --kinds or --packs, or the host with --url", meant(kind, known))
	}
}
