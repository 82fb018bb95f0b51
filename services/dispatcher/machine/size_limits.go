package machine

import (
	"encoding/json"
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
)

const (
	// maxPendingBytes limits the payload bytes before an append: a log accepts frames of 8 MiB. The
	// step that exceeds it is completed.
	maxPendingBytes = 1 << 20
	// maxNodeBytes limits the outputs, and the writes, of a node. Otherwise each node that joins
	// its inputs could double them. It is twice the default limit of a request body, because some
	// nodes output a value at two ports. Inputs are limited, too, before they are joined.
	maxNodeBytes  = 2 << 20
	maxInputBytes = 2 * maxNodeBytes
	// maxEffectBytes is the limit for effects: their client has limited the answer, and an output
	// may contain it more than once.
	maxEffectBytes = 3 * maxNodeBytes
	// maxStepBytes limits the outputs and writes of a node plus the overwritten values, because
	// their events go into one frame.
	maxStepBytes = 7 << 20
	// maxRunBytes limits the outputs of all nodes of a run, because its executor holds them in
	// memory. Outputs up to smallOutput do not count: few nodes have them.
	maxRunBytes = 64 << 20
	smallOutput = 64 << 10
	// maxDepth limits the nesting of a node's values: the redactor accepts documents of 128 levels,
	// and events wrap the values.
	maxDepth = 100
)

// EndOversized ends the run because its next events exceed a limit of its log.
func (m *Machine) EndOversized(now time.Time) {
	m.Begin(now)
	m.cancelNodes(now, string(fault.ContentTooLong))
	m.endFailed(now, "", &wire.NodeError{
		Code: string(fault.ContentTooLong),
		Message: "the next events of the run exceed the size or nesting limit of its log; " +
			"pass smaller values between nodes",
	})
}

// EventsTooLarge is the error of a node whose events exceed a limit of the log.
func EventsTooLarge() *wire.NodeError {
	return &wire.NodeError{
		Code: string(fault.ContentTooLong),
		Message: "the events of the node exceed the size or nesting limit of the run's log; " +
			"reduce its input or its output",
	}
}

func sizeOf(values map[string]json.RawMessage) (n int) {
	for _, v := range values {
		n += len(v)
	}
	return n
}

// checkSize returns an error if a node's values exceed a limit.
func checkSize(size, most int, what string) *wire.NodeError {
	if size <= most {
		return nil
	}
	return &wire.NodeError{
		Code: string(fault.ContentTooLong),
		Message: fmt.Sprintf("%s more than %d bytes of JSON together; "+
			"hand smaller values from node to node", what, most),
	}
}

// checkDepth returns an error if a value is nested deeper than maxDepth.
func checkDepth(v json.RawMessage) *wire.NodeError {
	if len(v) <= 2*maxDepth { // each level takes two bytes
		return nil
	}
	depth, inText := 0, false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth > maxDepth {
			return &wire.NodeError{
				Code: string(fault.ContentTooLong),
				Message: fmt.Sprintf("what the node makes is nested deeper than %d levels of objects and arrays; "+
					"hand flatter values from node to node", maxDepth),
			}
		}
	}
	return nil
}

// checkRunSize returns an error if the outputs of all nodes exceed a limit with the size of another
// node.
func (m *Machine) checkRunSize(size int) *wire.NodeError {
	if size <= smallOutput {
		return nil
	}
	for _, n := range m.st.Nodes {
		if made := sizeOf(n.Outputs); made > smallOutput {
			size += made
		}
	}
	if size <= maxRunBytes {
		return nil
	}
	return &wire.NodeError{
		Code: string(fault.ContentTooLong),
		Message: fmt.Sprintf("the nodes of the run put out more than %d bytes of JSON together; "+
			"hand smaller values from node to node", maxRunBytes),
	}
}

// checkOutputSize returns an error if a node's outputs or writes exceed a limit.
func (m *Machine) checkOutputSize(class node.Class, out node.Output) *wire.NodeError {
	most := maxNodeBytes
	if class == node.Effect {
		most = maxEffectBytes
	}
	written := sizeOf(out.Writes)
	for _, w := range out.Channels {
		written += len(w.Value)
		if bad := checkDepth(w.Value); bad != nil {
			return bad
		}
	}
	for _, made := range []map[string]json.RawMessage{out.Ports, out.Writes} {
		for _, v := range made {
			if bad := checkDepth(v); bad != nil {
				return bad
			}
		}
	}
	if bad := checkSize(sizeOf(out.Ports), most, "the outputs of the node are"); bad != nil {
		return bad
	}
	if bad := checkSize(written, most, "the variables and channels that the node writes are"); bad != nil {
		return bad
	}
	for name, v := range out.Writes {
		if was := m.st.Variables[name]; string(was) != string(v) {
			written += len(was)
		}
	}
	bad := checkSize(sizeOf(out.Ports)+written, maxStepBytes,
		"what the node puts out, what it writes and what it overwrites is")
	if bad != nil {
		return bad
	}
	return m.checkRunSize(sizeOf(out.Ports))
}
