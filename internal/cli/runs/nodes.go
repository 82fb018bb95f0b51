package runs

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/protocol/runstate"
)

// node is a row of the table of a run's nodes.
type node struct {
	id string
	runstate.NodeState
}

// nodes prints the nodes of a run in the order of their first events.
func (o *one) nodes(w io.Writer, r *client.Run) error {
	if len(r.NodeStates) == 0 {
		return nil
	}
	var rows []node
	for _, id := range slices.Sorted(maps.Keys(r.NodeStates)) {
		rows = append(rows, node{id, r.NodeStates[id]})
	}
	slices.SortStableFunc(rows, func(a, b node) int { return cmp.Compare(a.Since, b.Since) })
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	table := *o.print
	table.Out, table.Columns, table.Format = w, nil, render.Table
	return render.Rows(&table, nil, rows, nil, nil, []render.Column[node]{
		{Name: "NODE", Flex: true, Value: func(n node) string { return n.id }},
		{
			Name:  "STATUS",
			Word:  func(n node) string { return string(n.Status) },
			Value: func(n node) string { return string(n.Status) },
		},
		{Name: "TYPE", Flex: true, Value: func(n node) string { return n.TypeID }},
		{Name: "TRIES", Value: func(n node) string {
			if n.Attempts == 0 {
				return ""
			}
			return strconv.Itoa(n.Attempts)
		}},
		{Name: "ERROR", Flex: true, Value: func(n node) string {
			if n.Error == nil {
				return ""
			}
			return n.Error.Code
		}},
	})
}
