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
	// maxPendingBytes bounds what is placed before it is appended, in bytes of payloads: a log
	// takes frames of 8 MiB. The step that goes beyond it is whole.
	maxPendingBytes = 1 << 20
	// maxNodeBytes bounds what a node puts out, and what it writes. Nodes that join what they
	// are given would double it with each of them otherwise. It is twice the largest body of
	// a request that a host takes unless it is told otherwise, for some nodes put out the
	// same at two ports. What a node is given is bounded, too, before it is joined.
	maxNodeBytes  = 2 << 20
	maxInputBytes = 2 * maxNodeBytes
	// maxEffectBytes is the bound where somebody outside was asked: whoever asked has bounded
	// the answer, and it may stand in an output more than once.
	maxEffectBytes = 3 * maxNodeBytes
	// maxStepBytes bounds what a node puts out and writes together with what it overwrites,
	// which is told as well: the log takes it in one frame.
	maxStepBytes = 7 << 20
	// maxRunBytes bounds what the nodes of a run put out together: whoever carries it out
	// holds all of it. Outputs of up to smallOutput do not count, for there are few enough.
	maxRunBytes = 64 << 20
	smallOutput = 64 << 10
	// maxDepth bounds how deep what a node makes is nested: the redactor takes documents of
	// 128 levels, and events wrap what nodes make.
	maxDepth = 100
)

// isFull reports that what is pending is to be appended before anything is added.
func (m *Machine) isFull() bool { return m.pendingBytes > maxPendingBytes }

// MustAppend reports that the machine has stopped only to have its events appended.
func (m *Machine) MustAppend() bool { return m.appendFirst }

// EndOversized ends the run: what comes next in it is larger, or nested deeper, than its log takes.
func (m *Machine) EndOversized(now time.Time) {
	m.Begin(now)
	m.cancelNodes(now, string(fault.ContentTooLong))
	m.endFailed(now, "", &wire.NodeError{
		Code: string(fault.ContentTooLong), Message: "what the run would record next is larger, or nested deeper, than its log takes; hand smaller values from node to node",
	})
}

// EventsTooLarge fails a node that has to tell what its run's log does not take.
func EventsTooLarge() *wire.NodeError {
	return &wire.NodeError{
		Code:    string(fault.ContentTooLong),
		Message: "what the node has to tell of its work is larger, or nested deeper, than the run's log takes; give it less, or have it answer with less",
	}
}

func sizeOf(values map[string]json.RawMessage) (n int) {
	for _, v := range values {
		n += len(v)
	}
	return n
}

// checkSize says that a node was given or made too much; nil: it was not.
func checkSize(size, most int, what string) *wire.NodeError {
	if size <= most {
		return nil
	}
	return &wire.NodeError{
		Code:    string(fault.ContentTooLong),
		Message: fmt.Sprintf("%s more than %d bytes of JSON together; hand smaller values from node to node", what, most),
	}
}

// checkDepth says that a value is nested deeper than maxNested; nil: it is not.
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
				Code:    string(fault.ContentTooLong),
				Message: fmt.Sprintf("what the node makes is nested deeper than %d levels of objects and arrays; hand flatter values from node to node", maxDepth),
			}
		}
	}
	return nil
}

// checkRunSize says that all nodes together put out too much with what another one does;
// nil: they do not.
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
		Code:    string(fault.ContentTooLong),
		Message: fmt.Sprintf("the nodes of the run put out more than %d bytes of JSON together; hand smaller values from node to node", maxRunBytes),
	}
}

// checkOutputSize says that a node puts out or writes too much; nil: it does not.
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
	if bad := checkSize(sizeOf(out.Ports)+written, maxStepBytes, "what the node puts out, what it writes and what it overwrites is"); bad != nil {
		return bad
	}
	return m.checkRunSize(sizeOf(out.Ports))
}
