// Package verdict writes what came of checks: a row for each, and below them where each
// that failed did.
package verdict

import (
	"fmt"
	"maps"
	"strings"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/term"
)

// Status is what came of a check.
type Status string

// The statuses.
const (
	OK      Status = "ok"
	Fail    Status = "fail"
	Skipped Status = "skipped"
)

// Check is one promise that something was held to.
type Check struct {
	Name   string `json:"check"`
	Status Status `json:"status"`
	// Detail is the promise, how it was broken, or why it was not looked at.
	Detail string `json:"detail"`
	// Section is where the protocol makes the promise; empty: it does not.
	Section string `json:"section,omitempty"`
	// Findings are documents; Lines are the same for people.
	Findings []any    `json:"findings,omitempty"`
	Lines    []string `json:"-"`
}

// Found makes a check fail for as many reasons as there are findings.
func (c *Check) Found(finding any, line string) {
	c.Status = Fail
	c.Findings, c.Lines = append(c.Findings, finding), append(c.Lines, line)
}

// maxLines is how many findings of a check are printed for people.
const maxLines = 20

// Write prints the checks; about are members of the document beside them. Its error ends
// the command if a check failed.
func Write(p *render.Printer, about map[string]any, checks []Check) error {
	failed := 0
	for i := range checks {
		if c := &checks[i]; c.Status == Fail {
			failed++
			if n := len(c.Findings); n > 0 {
				c.Detail = fmt.Sprintf("%d found; promised: %s", n, c.Detail)
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

// places says where the checks that failed did.
func places(p *render.Printer, checks []Check) error {
	var b strings.Builder
	for _, c := range checks {
		for i, line := range c.Lines {
			if i == maxLines {
				fmt.Fprintf(&b, "%s: and %d more; -o json has all\n", c.Name, len(c.Lines)-i)
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
