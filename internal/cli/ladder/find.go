package ladder

import (
	"fmt"
	"slices"
	"strconv"

	"waybill.dev/waybill/protocol/view"
)

// Find returns the part of the executions that a name selects: the id of an envelope, a correlation
// id, a key, a node, or the id or sequence of an event.
func Find(all []*view.Execution, name string) []*view.Execution {
	var out []*view.Execution
	for _, x := range all {
		if x.NodeID == name || fmt.Sprintf("%s.%d", x.NodeID, x.Number) == name {
			out = append(out, x)
			continue
		}
		only := *x
		only.Calls = nil
		for _, c := range x.Calls {
			if key := fmt.Sprintf("%s.%d.%d", x.NodeID, x.Number, c.Ordinal); key == name {
				only.Calls = append(only.Calls, c)
				continue
			}
			call := *c
			call.Envelopes = nil
			for _, e := range c.Envelopes {
				byEvent := slices.ContainsFunc(e.Events, func(ev view.EventRef) bool { return ev.EventID == name || strconv.Itoa(ev.Sequence) == name })
				if e.EnvelopeID == name || e.CorrelationID == name || e.Key == name || byEvent {
					call.Envelopes = append(call.Envelopes, e)
				}
			}
			if len(call.Envelopes) > 0 {
				only.Calls = append(only.Calls, &call)
			}
		}
		if len(only.Calls) > 0 {
			out = append(out, &only)
		}
	}
	return out
}

// Names lists the nodes and keys that Find accepts.
func Names(all []*view.Execution) []string {
	var out []string
	for _, x := range all {
		out = append(out, x.NodeID)
		for _, c := range x.Calls {
			for _, e := range c.Envelopes {
				out = append(out, e.Key)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
