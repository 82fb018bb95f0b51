package model

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

// table prints the listing as a table.
func (l listing) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(l.Models) > 0 {
		fmt.Fprintln(t, "MODEL\tCONTEXT\tANSWER\tSCHEMA\tINPUT\tOUTPUT\tCAPABILITIES")
		for _, e := range l.Models {
			in, out := "-", "-"
			if p := e.Prices; p != nil {
				in, out = rate(p.Input), rate(p.Output)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Name(), tokens(e.ContextTokens), tokens(e.OutputTokens),
				orDash(string(e.StructuredOutput)), in, out, words(e.Capabilities))
		}
	}
	if len(l.Rules) > 0 {
		if len(l.Models) > 0 {
			fmt.Fprintln(t)
		}
		fmt.Fprintln(t, "RULE\tPROVIDER\tHAS\tLACKS")
		for _, r := range l.Rules {
			of := "(any unlisted)"
			if r.Provider != "" {
				of = r.Provider
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.Match, of, words(r.Capabilities), words(r.Lacks))
		}
	}
	fmt.Fprintf(t, "\nas of %s, %s\n", l.AsOf, l.Digest)
	return t.Flush()
}

// describe prints a catalogue entry.
func describe(w io.Writer, c *catalogue.Catalogue, e catalogue.Entry) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, value)
		}
	}
	line("model", e.Name())
	line("rule", e.Rule)
	line("aliases", strings.Join(slices.Concat(e.Aliases, e.Snapshots), ", "))
	line("retires", e.Retires)
	line("has", words(e.Capabilities))
	line("lacks", words(lacking(e)))
	line("unknown", strings.Join(e.Unsure, ", "))
	line("context", tokens(e.ContextTokens))
	line("answer", tokens(e.OutputTokens))
	line("schema", orDash(string(e.StructuredOutput)))
	line("dialect", e.SchemaDialect)
	line("sampling", yesOrNo(e.Sampling))
	from := ""
	if e.Prices == nil {
		line("prices", "-")
	}
	for p := e.Prices; p != nil; p = p.Then {
		line("prices"+from, rates(p.Rates))
		if p.Long != nil {
			line(fmt.Sprintf("  input over %d", p.Long.Over), rates(p.Long.Rates))
		}
		line("  until", p.Until)
		from = " then"
	}
	line("note", e.Note)
	p := c.Providers()[e.Provider]
	line("provider", p.Name)
	line("  note", p.Note)
	line("  source", strings.Join(p.Source, " "))
	line("  checked", p.Checked)
	return t.Flush()
}

// lacking returns the protocol's capabilities that the model is known to lack.
func lacking(e catalogue.Entry) []string {
	return slices.DeleteFunc(catalogue.Capabilities(), func(id string) bool {
		has, known := e.Has(id)
		return has || !known
	})
}

func printChanges(w io.Writer, changes []catalogue.Change) error {
	for _, c := range changes {
		if _, err := fmt.Fprintln(w, c); err != nil {
			return err
		}
	}
	return nil
}

func rate(r *catalogue.Rate) string {
	if r == nil {
		return "-"
	}
	return r.String()
}

func rates(r catalogue.Rates) string {
	return fmt.Sprintf("input %s, output %s, cache read %s, cache write %s (USD per million tokens)",
		rate(r.Input), rate(r.Output), rate(r.CacheRead), rate(r.CacheWrite))
}

func tokens(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func words(ids []string) string { return orDash(strings.Join(ids, ", ")) }

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func yesOrNo(b *bool) string {
	switch {
	case b == nil:
		return "-"
	case *b:
		return "yes"
	default:
		return "no"
	}
}
