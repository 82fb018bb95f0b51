package channel

import (
	"encoding/json"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
)

// Access defines which nodes may read and write a channel. Without a list, all nodes may (OpenWOP
// host contract §5.9).
type Access struct {
	Readers, Writers *[]string
}

// ParseAccess reads the member access of a declaration: "public", "private", or lists. Its shape is
// checked before.
func ParseAccess(raw json.RawMessage) Access {
	none := &[]string{}
	if string(raw) == `"private"` {
		return Access{none, none}
	}
	o := strictjson.Object(raw)
	read := func(name string) *[]string {
		list := []string{}
		if o[name] == nil || json.Unmarshal(o[name], &list) != nil {
			return nil
		}
		return &list
	}
	return Access{read("readers"), read("writers")}
}

// MayRead reports whether a node may read.
func (a Access) MayRead(nodeID, typeID string) bool { return allows(a.Readers, nodeID, typeID) }

// MayWrite reports whether a node may write.
func (a Access) MayWrite(nodeID, typeID string) bool { return allows(a.Writers, nodeID, typeID) }

// allows matches a node's exact id, its exact type, or a dotted prefix of its type followed by *.
func allows(list *[]string, nodeID, typeID string) bool {
	if list == nil {
		return true
	}
	for _, entry := range *list {
		prefix, wild := strings.CutSuffix(entry, "*")
		switch {
		case entry == nodeID, entry == typeID, entry == "*":
			return true
		case wild && strings.HasSuffix(prefix, ".") && strings.HasPrefix(typeID, prefix):
			return true
		}
	}
	return false
}
