package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/show"
	"waybill.dev/waybill/internal/cli/term"
)

func listCommand(s *session.Session) *cobra.Command {
	var q client.RunQuery
	var all bool
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List runs, newest first",
		Long: `Lists the runs of the tenant, newest first, or in the order of --sort. --filter has the syntax of the
console's filter: status:failed workflow:triage code:envelope_invalid tag:night kind:error
provider:openai model:gpt-5 since:2h until:2026-11-22 cost:0.05 waiting:1h text:"order 4711".
The error for an unknown term lists the terms that the host supports.

Runs without the value that --sort names come last, newest first.`,
		Example: `  waybill run list --status failed
  waybill run list --search 'order 4711'
  waybill run list --sort cost --filter since:1d --limit 5
  waybill run list --sort waitingSince --order asc --filter waiting:any
  waybill run list --filter 'workflow:triage since:2h' -o json
  waybill run list -o name --limit 10 | xargs -n1 waybill run get`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Limit < 0 || q.Limit > 200 {
				return exit.Usagef("--limit %d: must be 1 to 200; use --all for more", q.Limit)
			}
			return list(cmd, s, q, all)
		},
	}
	queryFlags(c, &q)
	f := c.Flags()
	f.IntVar(&q.Limit, "limit", 50, "runs per page, 1 to 200")
	f.StringVar(&q.Cursor, "cursor", "", "cursor of the previous page")
	f.BoolVar(&all, "all", false, "list all pages")
	f.StringVar(&q.Sort, "sort", "", "order: created, model, lastNode, tokens, cost, duration or waitingSince")
	f.StringVar(&q.Order, "order", "", "asc or desc (default desc)")
	f.StringVar(&q.Text, "search", "", "only runs whose inputs, outputs, answers or errors have words that begin with these")
	return c
}

// queryFlags adds the flags that select runs.
func queryFlags(c *cobra.Command, q *client.RunQuery) {
	f := c.Flags()
	f.StringVar(&q.Filter, "filter", "", "filter terms, such as 'status:failed since:2h'")
	f.StringVar(&q.Status, "status", "", "only runs with this status")
	f.StringVar(&q.WorkflowID, "workflow", "", "only runs of this workflow")
	f.StringVar(&q.Tag, "tag", "", "only runs with this tag")
}

// columns returns the columns of a list of runs. The value that the list is sorted by has a column in
// the usual form, too.
func columns(now time.Time, glyphs bool, sort string) []render.Column[client.RunSummary] {
	word := func(r client.RunSummary) string { return string(r.Status) }
	return []render.Column[client.RunSummary]{
		{Name: "RUN", Value: func(r client.RunSummary) string { return r.RunID }},
		{Name: "STATUS", Word: word, Value: func(r client.RunSummary) string {
			if glyphs {
				return term.Glyph(string(r.Status)) + " " + string(r.Status)
			}
			return string(r.Status)
		}},
		{Name: "WORKFLOW", Flex: true, Value: func(r client.RunSummary) string { return r.WorkflowID }},
		{Name: "AGE", Value: func(r client.RunSummary) string { return show.Age(r.CreatedAt, now) }},
		{Name: "TOOK", Value: func(r client.RunSummary) string { return show.Took(r.StartedAt, r.CompletedAt, now) }},
		{Name: "MODEL", Wide: sort != "model", Value: func(r client.RunSummary) string { return r.Model }},
		{Name: "NODE", Wide: sort != "lastNode", Value: func(r client.RunSummary) string { return r.LastNode }},
		{Name: "TOKENS", Wide: sort != "tokens", Value: tokens},
		{Name: "COST", Wide: sort != "cost", Value: cost},
		{Name: "WAITING", Wide: sort != "waitingSince", Value: func(r client.RunSummary) string { return show.Age(r.WaitingSince, now) }},
		{Name: "DETAIL", Flex: true, Value: detail},
		{Name: "CREATED", Wide: true, Value: func(r client.RunSummary) string { return r.CreatedAt }},
		{Name: "TAGS", Wide: true, Flex: true, Value: func(r client.RunSummary) string { return strings.Join(r.Tags, ",") }},
		{Name: "INPUT", Wide: true, Flex: true, Value: func(r client.RunSummary) string { return r.InputPreview }},
	}
}

// tokens returns the tokens of a run; empty without a model call.
func tokens(r client.RunSummary) string {
	if r.InputTokens == nil || r.OutputTokens == nil {
		return ""
	}
	return strconv.FormatInt(*r.InputTokens, 10) + "+" + strconv.FormatInt(*r.OutputTokens, 10)
}

// cost returns the cost of a run in US dollars; empty if it is unknown.
func cost(r client.RunSummary) string {
	if r.CostUSD == nil {
		return ""
	}
	return "$" + strconv.FormatFloat(*r.CostUSD, 'f', -1, 64)
}

// detail returns the error of a run, or what it waits for.
func detail(r client.RunSummary) string {
	if r.Quarantine != nil {
		return "quarantined: " + r.Quarantine.Reason
	}
	text := r.ErrorCode
	if text == "" {
		text = awaited(r.Waits)
	}
	if r.Stalled {
		text = strings.TrimSpace("stalled: " + text)
	}
	return text
}

// awaited describes what a run waits for; empty if it does not wait.
func awaited(w *client.Wait) string {
	if w == nil {
		return ""
	}
	if w.Limit != nil {
		return limitWords(w.Limit)
	}
	text := w.For
	if w.NodeID != "" {
		text += " at " + w.NodeID
	}
	if w.For == "timer" && w.DueAt != "" {
		text += " until " + w.DueAt
	}
	if w.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", w.Attempt)
	}
	return text
}

// next describes what a run waits for, how to continue it, or how long it has been stalled; empty
// if it is none of these.
func next(r *client.Run, now time.Time) string {
	if r.Quarantine != nil {
		return release(r.Quarantine)
	}
	if r.Waits != nil && r.Waits.Limit != nil {
		return "waits for " + limited(r.Waits.Limit, now)
	}
	text := show.WaitReason(r.Snapshot)
	if text == "" && r.Waits != nil {
		text = "waits for " + awaited(r.Waits)
		if r.Waits.HeldBy != "" {
			text += ", held by " + r.Waits.HeldBy
		}
	}
	if r.Stalled(now) {
		text = strings.TrimSuffix("stalled: no event for "+show.Age(r.LastEventAt, now)+"; "+text, "; ")
	}
	return text
}

func list(cmd *cobra.Command, s *session.Session, q client.RunQuery, all bool) error {
	p, err := s.Printer(cmd)
	if err != nil {
		return err
	}
	c, err := s.Client(cmd)
	if err != nil {
		return err
	}
	page, err := pages(cmd, c, q, all)
	if err != nil {
		return err
	}
	err = render.Rows(p, page.Doc, page.Runs, func(r client.RunSummary) []byte { return r.Doc },
		func(r client.RunSummary) string { return r.RunID }, columns(s.Now(), term.IsTTY(p.Out), q.Sort))
	if err != nil {
		return err
	}
	if len(page.Runs) == 0 && p.Format.ForPeople() {
		session.Notice(cmd, "%s", emptyHint(q))
	}
	if page.NextCursor != "" && p.Format.ForPeople() {
		session.Notice(cmd, "more runs: waybill %s --cursor %s", strings.Join(cmdline(cmd), " "), page.NextCursor)
	}
	return nil
}

func emptyHint(q client.RunQuery) string {
	if q.Filter+q.Status+q.WorkflowID+q.Tag+q.Text != "" {
		return "no matching runs"
	}
	return "no runs yet; start one with waybill run start WORKFLOW"
}

// cmdline returns the command with its selecting flags.
func cmdline(cmd *cobra.Command) []string {
	out := []string{"run", "list"}
	for _, name := range []string{"filter", "search", "status", "workflow", "tag", "sort", "order", "limit"} {
		if f := cmd.Flags().Lookup(name); f.Changed {
			out = append(out, fmt.Sprintf("--%s %q", name, f.Value.String()))
		}
	}
	return out
}

// noFilter is an invalid filter, and an invalid order. A host that accepts it ignores them.
const noFilter = ":"

// filters returns an error if the host ignores filters and would return every run.
func filters(ctx context.Context, c *client.Client) error {
	_, err := c.Runs(ctx, client.RunQuery{Filter: noFilter, Limit: 1})
	if err == nil {
		return exit.With(exit.Refused, errors.New("the host does not support --filter; use --status, --workflow and --tag"))
	}
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusBadRequest {
		return nil
	}
	return err
}

// sorts returns an error if the host ignores the order of a list.
func sorts(ctx context.Context, c *client.Client) error {
	_, err := c.Runs(ctx, client.RunQuery{Sort: noFilter, Limit: 1})
	if err == nil {
		return exit.With(exit.Refused, errors.New("the host does not support --sort and --order"))
	}
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusBadRequest {
		return nil
	}
	return err
}

// pages reads one page, or all of them as one.
func pages(cmd *cobra.Command, c *client.Client, q client.RunQuery, all bool) (*client.RunPage, error) {
	if q.Filter+q.Text != "" {
		if err := filters(cmd.Context(), c); err != nil {
			return nil, err
		}
	}
	if q.Sort+q.Order != "" {
		if err := sorts(cmd.Context(), c); err != nil {
			return nil, err
		}
	}
	if !all {
		page, err := c.Runs(cmd.Context(), q)
		if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusBadRequest {
			return nil, exit.With(exit.Usage, err) // a term of --filter is invalid
		}
		return page, err
	}
	whole := &client.RunPage{}
	docs := []json.RawMessage{}
	for q.Limit = 200; ; {
		page, err := c.Runs(cmd.Context(), q)
		if err != nil {
			return nil, err
		}
		whole.Runs = append(whole.Runs, page.Runs...)
		for _, r := range page.Runs {
			docs = append(docs, r.Doc)
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			whole.Doc, err = render.Encode(map[string]any{"runs": docs})
			return whole, err
		}
	}
}

func getCommand(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "get RUN",
		Short: "Show a run: status, what it waits for, outputs",
		Example: `  waybill run get @latest
  waybill run get RUN -o json | jq .outputs`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: CompleteIDs(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := about(cmd, s, args[0])
			if err != nil {
				return err
			}
			r, err := o.client.Run(cmd.Context(), o.id)
			if err != nil {
				return err
			}
			return o.snapshot(r, s.Now())
		},
	}
}

// snapshot prints a run.
func (o *one) snapshot(r *client.Run, now time.Time) error {
	return o.print.Document(r.Doc, r.RunID, func(w io.Writer) error {
		status := string(r.Status)
		if o.print.Color {
			status = term.Paint(status, status)
		}
		if r.Quarantine != nil {
			status += " (quarantined)"
		}
		if _, err := fmt.Fprintf(w, "%s %s  %s\n", term.Glyph(string(r.Status)), status, r.RunID); err != nil {
			return err
		}
		failure, cost := "", ""
		if r.Error != nil {
			failure = r.Error.Code + ": " + r.Error.Message
		}
		if r.Metrics != nil {
			cost = show.Cost(r.Metrics)
		}
		err := render.Pairs(w, "workflow", r.WorkflowID, "started", r.StartedAt, "took", show.Took(r.StartedAt, r.CompletedAt, now),
			"quarantine", quarantined(r.Quarantine, now), "next", next(r, now), "error", failure, "tags", strings.Join(r.Tags, ", "), "parent", r.ParentRunID,
			"source", r.SourceRunID, "models", cost)
		if err != nil {
			return err
		}
		if err := o.nodes(w, r); err != nil || len(r.Outputs) == 0 {
			return err
		}
		_, err = fmt.Fprintf(w, "\noutputs %s\n", term.Clean(string(r.Outputs)))
		return err
	})
}
