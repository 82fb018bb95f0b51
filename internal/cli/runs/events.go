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
		Long: `Lists the events that a run has recorded so far; ` + "`run watch`" + ` goes on to its end. --type
takes the name of a type, of the protocol or of a vendor, or a pattern such as envelope.*;
waybill explain TYPE says what one means. A type that no event can have is refused.`,
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
				return exit.Usagef("--from and --limit: want 0 or more")
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
	f.IntVar(&limit, "limit", 0, "how many events at most; 0: all")
	f.StringSliceVar(&w.types, "type", nil, "only events of these types, or of those that a pattern fits (repeatable)")
	f.StringVar(&w.group, "group", "", "only events of this group: "+strings.Join(groups(), ", "))
	return c
}

// Each hands over what a run has recorded, from a sequence on, until each wants no more. The
// page is the last one, and says where the run stands.
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
			return nil, fmt.Errorf("the host gives events before %d again, after it was asked for those from there on", from)
		}
		from = next
	}
}

// events lists what a run has recorded.
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
