package node

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
)

// InvocationID returns the idempotency key of a call. It is the same for every attempt and every
// repetition after a crash (OpenWOP host contract §5.5). ordinal counts the calls of the node from
// 0. peer is the callee, such as mcp:files:read.
func InvocationID(tenant, runID, nodeID string, ordinal int, peer string) string {
	sum := sha256.Sum256([]byte("openwop:activity:v2\x00" + strings.Join([]string{
		tenant, runID, nodeID, strconv.Itoa(ordinal), peer,
	}, "\x00")))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Peer returns the callee of a tool or agent node; empty for other nodes.
func Peer(typeID string, config json.RawMessage) string {
	var c struct {
		Server string `json:"server"`
		Tool   string `json:"tool"`
		Agent  string `json:"agent"`
	}
	_ = strictjson.Read(config, &c) // a node with an unreadable config calls nothing
	switch typeID {
	case TypeMCPCallTool:
		return "mcp:" + c.Server + ":" + c.Tool
	case TypeA2ASendMessage:
		return "a2a:" + c.Agent
	default:
		return ""
	}
}

// MarkedIdempotent reports whether the author marked the node with config.idempotent.
func MarkedIdempotent(config json.RawMessage) bool {
	var c struct {
		Idempotent bool `json:"idempotent"`
	}
	return strictjson.Read(config, &c) == nil && c.Idempotent
}

// OnUnknownOutcome returns the policy for a node: its own setting, else retry for model calls and
// calls marked idempotent, else fail.
func (t Type) OnUnknownOutcome(n *workflow.Node) workflow.UnknownOutcome {
	switch own := n.OnUnknownOutcome(); {
	case own != workflow.OutcomeByType:
		return own
	case t.AsksModel(), t.Idempotent != nil && t.Idempotent(t.Configure(n.Config)):
		return workflow.OutcomeRetry
	default:
		return workflow.OutcomeFail
	}
}
