// Command words lists slips from plain language in the lines that a change adds. It never fails a
// build: a listed word can be right. Run it from the top of the repository: `make words`.
//
//	words [BASE]
//
// The change begins where the current branch left BASE, a commit or a branch: by default origin/main,
// or main without a remote.
package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"unicode"
)

//go:embed words.txt
var list string

// longest is the number of words that a sentence may have.
const longest = 30

// files are the files that people read: sources, pages and build files, without generated ones.
var files = []string{
	"*.go", "*.ts", "*.tsx", "*.md", "*.proto", "*.yaml", "*.tpl", "*.sh", "Makefile", "*.mk",
	":!*.pb.go", ":!*.pb.gw.go", ":!*/gen/*", ":!*/testdata/*", ":!*/schema.d.ts", ":!tools/words/*",
}

func main() {
	if err := run(context.Background(), os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	if len(args) == 0 {
		args = []string{"origin/main", "main"}
	}
	base, err := fork(ctx, args)
	if err != nil {
		return err
	}
	diff, err := git(ctx, append([]string{"diff", "--unified=0", "--no-color", "--no-ext-diff", base, "--"}, files...)...)
	if err != nil {
		return err
	}
	slips := find(parse(list), diff)
	for _, s := range slips {
		_, _ = fmt.Fprintln(out, s)
	}
	_, _ = fmt.Fprintf(out, "%d slips in the lines changed since %.12s\n", len(slips), base)
	return nil
}

// fork returns the commit where the current branch left the first of the branches that exists.
func fork(ctx context.Context, branches []string) (string, error) {
	var err error
	for _, branch := range branches {
		var base string
		if base, err = git(ctx, "merge-base", branch, "HEAD"); err == nil {
			return strings.TrimSpace(base), nil
		}
	}
	return "", fmt.Errorf("%s: no such commit; set BASE to one: %w", strings.Join(branches, ", "), err)
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(failed.Stderr))
	}
	return string(out), err
}

// word is an entry of the list.
type word struct {
	pattern      *regexp.Regexp
	text, remedy string
}

// parse reads the list. Lines without a tab are comments.
func parse(list string) []word {
	var out []word
	for line := range strings.Lines(list) {
		text, remedy, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if ok && !strings.HasPrefix(text, "#") {
			out = append(out, word{regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(text) + `\b`), text, remedy})
		}
	}
	return out
}

// slip is a finding in an added line.
type slip struct {
	file string
	line int
	what string
	text string
}

// String returns the finding in the form of a compiler's message.
func (s slip) String() string { return fmt.Sprintf("%s:%d: %s\n\t%s", s.file, s.line, s.what, s.text) }

// find returns the slips in the added lines of a diff.
func find(words []word, diff string) []slip {
	var out []slip
	at := slip{}
	lines := bufio.NewScanner(strings.NewReader(diff))
	lines.Buffer(nil, len(diff)+1)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "+++ "):
			at.file = strings.TrimPrefix(strings.TrimPrefix(line, "+++ "), "b/")
		case strings.HasPrefix(line, "@@ "):
			at.line = 0
			if _, added, ok := strings.Cut(line, " +"); ok {
				_, _ = fmt.Sscanf(added, "%d", &at.line) // 0 without a number
			}
		case strings.HasPrefix(line, "+"):
			at.text = strings.TrimSpace(line[1:])
			for _, what := range slipsOf(words, at.text) {
				at.what = what
				out = append(out, at)
			}
			at.line++
		}
	}
	return out
}

// slipsOf returns the slips of a line.
func slipsOf(words []word, line string) []string {
	if !prose(line) {
		return nil
	}
	var out []string
	for _, w := range words {
		if w.pattern.MatchString(line) {
			out = append(out, fmt.Sprintf("%q: %s", w.text, w.remedy))
		}
	}
	for sentence := range strings.SplitSeq(sentences(line), ". ") {
		if n := len(strings.Fields(sentence)); n > longest {
			out = append(out, fmt.Sprintf("a sentence of %d words: split it", n))
		}
	}
	return out
}

// sentences returns the part of a line that has whole sentences: a comment, or a line of a page.
func sentences(line string) string {
	if _, comment, ok := strings.Cut(line, "// "); ok {
		return comment
	}
	if strings.HasPrefix(line, "|") || strings.ContainsAny(line, "{}\"") { // a table, or code
		return ""
	}
	return line
}

var three = regexp.MustCompile(`[A-Za-z]+ [a-z]+ [a-z]+`)

// prose reports whether a line has text for people: a comment, a string, or three words in a row.
func prose(line string) bool {
	return strings.ContainsAny(line, "\"`") || strings.Contains(line, "//") || strings.HasPrefix(line, "#") || three.MatchString(line) ||
		strings.HasPrefix(line, "*") && strings.ContainsFunc(line, unicode.IsLetter)
}
