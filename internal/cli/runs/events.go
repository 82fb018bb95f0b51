package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/show"
)

func eventsCommand(s *session.Session) *cobra.Command {
	var from, limit int
	var w wanted
	c := &cobra.Command{
		Use:   "events RUN",
		Short: "List the events of a run so far",
		Long: `Lists the recorded events of a run; ` + "`run watch`" + ` follows it to its end. --type takes an event
type of the protocol or a vendor, or a pattern such as envelope.*. waybill explain TYPE explains a
type.`,
		Example: `  waybill run events @latest
  waybill run events RUN --type 'envelope.*' -o jsonl
  waybill run events RUN --group interrupt --columns seq,type,detail`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: CompleteIDs(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.check(); err != nil {
				return err
			}
			if from < 0 || limit < 0 {
				return exit.Usagef("--from and --limit must be at least 0")
			}
			o, err := about(cmd, s, args[0])
			if err != nil {
				return err
			}
			return o.events(cmd, from, limit, w.fits)
		},
	}
	f := c.Flags()
	f.IntVar(&from, "from", 0, "first sequence to list")
	f.IntVar(&limit, "limit", 0, "maximum number of events; 0 means all")
	f.StringSliceVar(&w.types, "type", nil, "only events of this type or pattern (repeatable)")
	f.StringVar(&w.group, "group", "", "only events of this group: "+strings.Join(groups(), ", "))
	return c
}

// Each calls each for the recorded events of a run from a sequence on, until it returns false. It
// returns the last page, which has the status of the run.
func Each(ctx context.Context, c *client.Client, id string, from int, each func(client.Event) (more bool)) (*client.EventPage, error) {
	for {
		page, err := c.Events(ctx, id, client.EventQuery{From: from})
		if err != nil {
			return nil, err
		}
		for _, e := range page.Events {
			if !each(e) {
				return page, nil
			}
		}
		if page.IsComplete || len(page.Events) < client.EventPageSize {
			return page, nil
		}
		next := page.Events[len(page.Events)-1].Sequence + 1
		if next <= from {
			return nil, fmt.Errorf("the host returned events before the requested sequence %d", from)
		}
		from = next
	}
}

// events lists the recorded events of a run.
func (o *one) events(cmd *cobra.Command, from, limit int, want func(client.Event) bool) error {
	all, docs := []client.Event{}, []json.RawMessage{}
	page, err := Each(cmd.Context(), o.client, o.id, from, func(e client.Event) bool {
		if want(e) {
			all, docs = append(all, e), append(docs, e.Doc)
		}
		return limit == 0 || len(all) < limit
	})
	if err != nil {
		return err
	}
	doc, err := render.Encode(map[string]any{"runId": o.id, "status": page.RunStatus, "events": docs})
	if err != nil {
		return err
	}
	return render.Rows(o.print, doc, all, func(e client.Event) []byte { return e.Doc },
		func(e client.Event) string { return e.EventID }, eventColumns())
}

func eventColumns() []render.Column[client.Event] {
	return []render.Column[client.Event]{
		{Name: "SEQ", Value: func(e client.Event) string { return strconv.Itoa(e.Sequence) }},
		{Name: "TIME", Value: func(e client.Event) string { return show.Clock(e.Timestamp) }},
		{
			Name:  "TYPE",
			Word:  func(e client.Event) string { return word(e.Type) },
			Value: func(e client.Event) string { return string(e.Type) },
		},
		{Name: "NODE", Flex: true, Value: func(e client.Event) string { return e.NodeID }},
		{Name: "DETAIL", Flex: true, Value: func(e client.Event) string { return show.Detail(e.Event) }},
		{Name: "CAUSE", Wide: true, Value: func(e client.Event) string { return e.CausationID }},
		{Name: "ID", Wide: true, Value: func(e client.Event) string { return e.EventID }},
	}
}
