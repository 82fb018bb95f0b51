// Package verdict writes results of checks: a row for each check, then the findings.
package verdict

import (
	"fmt"
	"maps"
	"strings"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/term"
)

// Status is the result of a check.
type Status string

// The statuses.
const (
	OK      Status = "ok"
	Fail    Status = "fail"
	Skipped Status = "skipped"
)

// Check is a rule and its result.
type Check struct {
	Name   string `json:"check"`
	Status Status `json:"status"`
	// Detail is the rule, the number of findings, or why the check was skipped.
	Detail string `json:"detail"`
	// Section is the section of the protocol; empty if the rule is not from the protocol.
	Section string `json:"section,omitempty"`
	// Findings are the findings as JSON, Lines the same as text.
	Findings []any    `json:"findings,omitempty"`
	Lines    []string `json:"-"`
}

// Found adds a finding and marks the check as failed.
func (c *Check) Found(finding any, line string) {
	c.Status = Fail
	c.Findings, c.Lines = append(c.Findings, finding), append(c.Lines, line)
}

// maxLines is the maximum number of printed findings per check.
const maxLines = 20

// Write prints the checks. about has additional members of the JSON document. The returned error
// ends the command if a check failed.
func Write(p *render.Printer, about map[string]any, checks []Check) error {
	failed := 0
	for i := range checks {
		if c := &checks[i]; c.Status == Fail {
			failed++
			if n := len(c.Findings); n > 0 {
				c.Detail = fmt.Sprintf("%d found; rule: %s", n, c.Detail)
			}
		}
	}
	whole := map[string]any{"checks": checks, "ok": failed == 0}
	maps.Copy(whole, about)
	doc, err := render.Encode(whole)
	if err != nil {
		return err
	}
	row := func(c Check) []byte {
		b, err := render.Encode(c)
		if err != nil {
			return nil
		}
		return b
	}
	err = render.Rows(p, doc, checks, row, func(c Check) string { return c.Name }, []render.Column[Check]{
		{Name: "CHECK", Value: func(c Check) string { return c.Name }},
		{
			Name:  "STATUS",
			Word:  func(c Check) string { return string(c.Status) },
			Value: func(c Check) string { return string(c.Status) },
		},
		{Name: "DETAIL", Flex: true, Value: func(c Check) string { return c.Detail }},
		{Name: "SECTION", Wide: true, Value: func(c Check) string { return c.Section }},
	})
	if err == nil && p.Query == nil && p.Format.ForPeople() {
		err = places(p, checks)
	}
	if err != nil || failed == 0 {
		return err
	}
	return exit.Outcome(exit.Failed, "a check failed")
}

// places prints the findings.
func places(p *render.Printer, checks []Check) error {
	var b strings.Builder
	for _, c := range checks {
		for i, line := range c.Lines {
			if i == maxLines {
				fmt.Fprintf(&b, "%s: %d more; -o json lists all\n", c.Name, len(c.Lines)-i)
				break
			}
			fmt.Fprintf(&b, "%s: %s\n", c.Name, term.Clean(line))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := fmt.Fprint(p.Out, "\n", b.String())
	return err
}
