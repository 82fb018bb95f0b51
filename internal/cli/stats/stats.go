// Package stats has the command that shows what runs did over time.
package stats

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/show"
)

type options struct {
	span     string
	workflow string
	tenants  bool
}

// Command is `waybill stats`.
func Command(s *session.Session) *cobra.Command {
	o := &options{span: "24h"}
	c := &cobra.Command{
		Use:   "stats",
		Short: "Show what runs did over time: counts, failures, durations, tokens and cost",
		Long: `Adds up what the runs of the key's tenant did, by workflow and by model. Times are extended to whole steps:
5 minutes for spans up to 14 hours, hours up to 7 days, otherwise days of UTC.

--tenants lists the tenants with their runs, tokens and cost: all of them if the key has the scope
tenants:read, otherwise the key's own.

` + exit.Help,
		Example: `  waybill stats
  waybill stats --since 7d --workflow triage
  waybill stats --since 30d --tenants
  waybill stats -o json --query .usage.costUsd`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd, s, o) },
	}
	f := c.Flags()
	f.StringVar(&o.span, "since", o.span, "start of the span: a duration such as 90m, 24h or 30d, or a time of RFC 3339")
	f.StringVar(&o.workflow, "workflow", "", "only runs of this workflow")
	f.BoolVar(&o.tenants, "tenants", false, "list tenants instead")
	c.MarkFlagsMutuallyExclusive("workflow", "tenants")
	s.Flags(c)
	return c
}

func run(cmd *cobra.Command, s *session.Session, o *options) error {
	now := s.Now()
	since, err := start(o.span, now)
	if err != nil {
		return err
	}
	until := now.UTC().Format(time.RFC3339Nano) // without it, the host ends the span later, and 366d is too long
	p, err := s.Printer(cmd)
	if err != nil {
		return err
	}
	c, err := s.Client(cmd)
	if err != nil {
		return err
	}
	if o.tenants {
		found, err := c.TenantStatistics(cmd.Context(), since, until)
		if err != nil {
			return err
		}
		return printTenants(cmd, p, found)
	}
	found, err := c.Statistics(cmd.Context(), client.StatisticsQuery{Since: since, Until: until, WorkflowID: o.workflow})
	if err != nil {
		return err
	}
	return p.Document(found.Doc, found.Since, func(w io.Writer) error { return write(w, found, p.Width) })
}

// maxSpan is the longest span that a host answers.
const maxSpan = 366 * 24 * time.Hour

// start returns the start of a span as a time of RFC 3339.
func start(text string, now time.Time) (string, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.Format(time.RFC3339Nano), nil
	}
	d, err := duration(text)
	if err != nil || d <= 0 || d > maxSpan {
		return "", exit.Usagef("--since %s: want a duration up to 366d such as 90m, 24h or 30d, or a time such as %s", text, now.UTC().Format(time.RFC3339))
	}
	return now.Add(-d).UTC().Format(time.RFC3339Nano), nil
}

// duration parses a duration, also one of whole days, such as 30d.
func duration(text string) (time.Duration, error) {
	days, ok := strings.CutSuffix(text, "d")
	if !ok {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	return time.Duration(n) * 24 * time.Hour, err
}

// column is a column of a table of totals.
type column = render.Column[totals]

// totals are the counts of a row.
type totals struct {
	name  string
	runs  client.RunTotals
	usage client.UsageTotals
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func dollars(u client.UsageTotals) string {
	if u.Priced == 0 {
		return ""
	}
	return "$" + strconv.FormatFloat(u.CostUSD, 'f', 4, 64)
}

func took(ms *int64) string {
	if ms == nil {
		return ""
	}
	return show.Duration(time.Duration(*ms) * time.Millisecond)
}

func runColumns(name string) []column {
	return append([]column{
		{Name: name, Flex: true, Value: func(t totals) string { return t.name }},
		{Name: "RUNS", Value: func(t totals) string { return number(t.runs.Created) }},
		{Name: "COMPLETED", Value: func(t totals) string { return number(t.runs.Completed) }},
		{Name: "FAILED", Value: func(t totals) string { return number(t.runs.Failed) }},
		{Name: "P50", Value: func(t totals) string { return took(t.runs.P50Ms) }},
		{Name: "P95", Value: func(t totals) string { return took(t.runs.P95Ms) }},
	}, usageColumns()...)
}

func usageColumns() []column {
	return []column{
		{Name: "CALLS", Value: func(t totals) string { return number(t.usage.Calls) }},
		{Name: "TOKENS IN", Value: func(t totals) string { return number(t.usage.InputTokens) }},
		{Name: "OUT", Value: func(t totals) string { return number(t.usage.OutputTokens) }},
		{Name: "COST", Value: func(t totals) string { return dollars(t.usage) }},
	}
}

func printTenants(cmd *cobra.Command, p *render.Printer, found *client.TenantStatistics) error {
	row := func(t client.TenantTotals) []byte {
		b, err := render.Encode(t)
		if err != nil {
			return nil
		}
		return b
	}
	var columns []render.Column[client.TenantTotals]
	for _, c := range runColumns("TENANT") {
		columns = append(columns, render.Column[client.TenantTotals]{Name: c.Name, Flex: c.Flex, Value: func(t client.TenantTotals) string {
			return c.Value(totals{t.Tenant, t.Runs, t.Usage})
		}})
	}
	if err := render.Rows(p, found.Doc, found.Tenants, row, func(t client.TenantTotals) string { return t.Tenant }, columns); err != nil {
		return err
	}
	switch {
	case !p.Format.ForPeople():
	case found.MoreTenants > 0:
		session.Notice(cmd, "%d further tenants", found.MoreTenants)
	case len(found.Tenants) == 0:
		session.Notice(cmd, "no runs from %s to %s", found.Since, found.Until)
	}
	return nil
}

// write prints statistics for people.
func write(w io.Writer, found *client.Statistics, width int) error {
	r, u := found.Runs, found.Usage
	failures := ""
	for i, f := range r.Failures[:min(len(r.Failures), 5)] {
		if i > 0 {
			failures += ", "
		}
		failures += fmt.Sprintf("%s %d", f.Code, f.Count)
	}
	tokens, answers := "", ""
	if u.Calls > 0 {
		tokens = fmt.Sprintf("%d calls, %d tokens in, %d out, %d retries", u.Calls, u.InputTokens, u.OutputTokens, u.Retries)
	}
	if u.Answers > 0 {
		answers = fmt.Sprintf("%d, %d accepted first, %d corrected", u.Answers, u.AcceptedFirst, u.Corrected)
	}
	durations := ""
	if r.P50Ms != nil && r.P95Ms != nil {
		durations = fmt.Sprintf("p50 %s, p95 %s", took(r.P50Ms), took(r.P95Ms))
	}
	err := render.Pairs(w, "from", found.Since, "to", found.Until,
		"runs", fmt.Sprintf("%d created, %d completed, %d failed, %d cancelled", r.Created, r.Completed, r.Failed, r.Cancelled),
		"took", durations, "failures", failures, "models", tokens, "answers", answers, "cost", dollars(u))
	if err != nil {
		return err
	}
	var workflows, models []totals
	for _, t := range found.Workflows {
		workflows = append(workflows, totals{t.WorkflowID, t.Runs, t.Usage})
	}
	for _, t := range found.Models {
		models = append(models, totals{name: t.Provider + "/" + t.Model, usage: t.Usage})
	}
	if err := table(w, width, workflows, runColumns("WORKFLOW"), found.MoreWorkflows); err != nil {
		return err
	}
	name := column{Name: "MODEL", Flex: true, Value: func(t totals) string { return t.name }}
	return table(w, width, models, append([]column{name}, usageColumns()...), 0)
}

func table(w io.Writer, width int, rows []totals, columns []column, more int) error {
	if len(rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	p := &render.Printer{Out: w, Format: render.Table, Width: width}
	if err := render.Rows(p, nil, rows, nil, nil, columns); err != nil {
		return err
	}
	if more > 0 {
		_, err := fmt.Fprintf(w, "and %d further workflows\n", more)
		return err
	}
	return nil
}
