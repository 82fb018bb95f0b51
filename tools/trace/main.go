// Command trace checks that every rule of a ledger has code and tests. It fails on a hole: a rule
// without either, a reference without a target, or a line of the contract without a rule. Run it
// from the top of the repository: `make trace`.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	ledgerPath := flag.String("ledger", "docs/rules/envelopes.yaml", "the ledger of rules")
	contractPath := flag.String("contract", "", "the text of the contract; empty skips the comparison")
	quiet := flag.Bool("quiet", false, "print only the holes and the sum")
	mapFile := flag.String("map", "", "write the page of the ledgers that follow as arguments to this file, and rfc-index.md next to it, and do nothing else")
	flag.Parse()

	if *mapFile != "" {
		if err := writeMap(*mapFile, flag.Args()); err != nil {
			fmt.Fprintln(os.Stderr, "trace:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(os.Stdout, ".", *ledgerPath, *contractPath, *quiet); err != nil {
		fmt.Fprintln(os.Stderr, "trace:", err)
		os.Exit(1)
	}
}

// run checks the ledger against the sources below root, and prints the result.
func run(out io.Writer, root, ledgerPath, contractPath string, quiet bool) error {
	doc, err := os.ReadFile(ledgerPath)
	if err != nil {
		return err
	}
	l, err := parseLedger(doc)
	if err != nil {
		return fmt.Errorf("%s: %w", ledgerPath, err)
	}
	holes := l.holes(newSources(root))
	if contractPath == "" {
		fmt.Fprintln(out, "SKIPPED: the contract is missing, so its lines are not compared with the rules")
	} else {
		text, err := os.ReadFile(contractPath)
		if err != nil {
			return err
		}
		holes = append(holes, l.unanswered(obligations(string(text), l))...)
	}
	if !quiet {
		l.print(out)
	}
	for _, h := range holes {
		fmt.Fprintln(out, "HOLE", h)
	}
	fmt.Fprintf(out, "%d rules, %d of them not this host's, %d holes\n", len(l.Rules), l.absent(), len(holes))
	if len(holes) > 0 {
		return fmt.Errorf("%d holes", len(holes))
	}
	return nil
}

// print writes rule → code → test, in the order of the ledger.
func (l *ledger) print(out io.Writer) {
	for _, r := range l.Rules {
		fmt.Fprintf(out, "§%-6s %s\n", r.At, r.Rule)
		if r.Absent != "" {
			fmt.Fprintf(out, "        not here: %s\n", r.Absent)
		}
		if len(r.Code) > 0 {
			fmt.Fprintf(out, "        code: %s\n", strings.Join(r.Code, ", "))
		}
		if len(r.Test) > 0 {
			fmt.Fprintf(out, "        test: %s\n", strings.Join(r.Test, ", "))
		}
	}
}
