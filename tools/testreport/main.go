// Command testreport reads the output of `go test -json` and prints what a reader needs: a line for
// each package with its seconds, the output of failed tests, each skipped test with its reason, and
// the slowest packages. It fails if a test or a build failed.
//
//	go test -json ./... | testreport
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// slowest is the number of packages in the list at the end.
const slowest = 10

func main() {
	if err := report(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
}

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, Test, Output string
	ImportPath                    string // of build output
	Elapsed                       float64
}

// tests collects the outcome of all packages.
type tests struct {
	out io.Writer
	// printed has the output of each test in progress, by package and test; Test is empty for the
	// package itself.
	printed map[[2]string]*strings.Builder
	seconds map[string]float64
	// skipped are the tests by reason.
	skipped map[string][]string
	failed  int
}

func report(in io.Reader, out io.Writer) error {
	r := tests{out: out, printed: map[[2]string]*strings.Builder{}, seconds: map[string]float64{}, skipped: map[string][]string{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			r.read(line)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	r.summary()
	if r.failed > 0 {
		return fmt.Errorf("%d failed", r.failed)
	}
	if len(r.seconds) == 0 {
		return errors.New("no package was tested")
	}
	return nil
}

func (r *tests) read(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil { // not from a test
		r.print(line)
		return
	}
	of := [2]string{e.Package, e.Test}
	switch e.Action {
	case "output":
		if r.printed[of] == nil {
			r.printed[of] = &strings.Builder{}
		}
		r.printed[of].WriteString(e.Output)
	case "build-output":
		r.print(e.Output)
	case "build-fail":
		r.failed++
	case "fail":
		r.failed++
		r.print(r.taken(of))
		r.done(e)
	case "skip":
		if text := r.taken(of); e.Test != "" {
			reason := reasonOf(text)
			r.skipped[reason] = append(r.skipped[reason], e.Package+"."+e.Test)
		}
	case "pass":
		r.taken(of)
		r.done(e)
	}
}

// done prints the line of a package.
func (r *tests) done(e event) {
	if e.Test == "" {
		r.seconds[e.Package] = e.Elapsed
		r.print(fmt.Sprintf("%-4s %7.1f s  %s\n", e.Action, e.Elapsed, e.Package))
	}
}

// taken returns the output of a test, once.
func (r *tests) taken(of [2]string) string {
	b := r.printed[of]
	if b == nil {
		return ""
	}
	delete(r.printed, of)
	return b.String()
}

// print writes to the standard output; its errors show in the shell.
func (r *tests) print(text string) { _, _ = io.WriteString(r.out, text) }

// reasonOf finds the reason in the output of a skipped test, without its place.
func reasonOf(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if _, reason, ok := strings.Cut(line, ".go:"); ok {
			_, reason, _ = strings.Cut(reason, ": ")
			return strings.TrimPrefix(reason, "SKIPPED, ")
		}
	}
	return "no reason is given"
}

func (r *tests) summary() {
	for _, reason := range slices.Sorted(maps.Keys(r.skipped)) {
		all := r.skipped[reason]
		r.print(fmt.Sprintf("SKIPPED %s\n\t%s\n", reason, strings.Join(all, "\n\t")))
	}
	packages := slices.SortedFunc(maps.Keys(r.seconds), func(a, b string) int { return cmp.Compare(r.seconds[b], r.seconds[a]) })
	r.print(fmt.Sprintf("%d packages; the slowest:\n", len(packages)))
	for _, p := range packages[:min(slowest, len(packages))] {
		r.print(fmt.Sprintf("%12.1f s  %s\n", r.seconds[p], p))
	}
}
