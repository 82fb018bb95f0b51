package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// llms renders llms.txt, the entry point for readers of one file (https://llmstxt.org). Groups and
// order are those of docs/README.md, and each page is described by its own first sentence.
func llms(root string) (string, error) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return "", err
	}
	index, err := os.ReadFile(filepath.Join(root, "docs", "README.md"))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Waybill\n\n> %s\n\n%s", firstParagraph(string(readme)), llmsNote)
	for line := range strings.Lines(string(index)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			fmt.Fprintf(&b, "\n## %s\n\n", name)
			continue
		}
		if !entry.MatchString(line) {
			continue
		}
		for _, m := range mdLink.FindAllStringSubmatch(line, -1) {
			about, err := page(root, m[1], m[2], line)
			if err != nil {
				return "", err
			}
			b.WriteString(about)
		}
	}
	b.WriteString("- [Contributing](CONTRIBUTING.md), [changes](CHANGELOG.md), [what is deployed](deploy/README.md)\n")
	return b.String(), nil
}

const llmsNote = "All pages are Markdown, and this list of them is generated: `make gen`. Every shell block of them is executed by the tests. A host describes its API at\n" +
	"`GET /v1/openapi.json`, and what it offers at `GET /.well-known/openwop`.\n"

var (
	entry     = regexp.MustCompile(`^(\d+\.|-) `)
	mdLink    = regexp.MustCompile(`\[([^\]]+)\]\(([^)\s]+)\)`)
	sentence  = regexp.MustCompile(`^(.+?\.)(?: |$)`)
	generated = regexp.MustCompile(`^Generated from .*?; do not edit\. ?`)
)

// page returns the line of one page; for a folder it uses the index's text.
func page(root, text, to, line string) (string, error) {
	at := path.Join("docs", to)
	if path.Ext(to) != ".md" {
		_, about, _ := strings.Cut(strings.TrimSpace(line), "): ")
		return fmt.Sprintf("- [%s](%s): %s\n", upperFirst(text), at, about), nil
	}
	whole, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(at)))
	if err != nil {
		return "", err
	}
	title, rest, ok := strings.Cut(strings.TrimPrefix(string(whole), "# "), "\n")
	about := firstParagraph(rest)
	if m := sentence.FindStringSubmatch(about); m != nil {
		about = m[1]
	}
	if !ok || about == "" {
		return "", fmt.Errorf("%s: want a title, and a sentence that says what the page is about", at)
	}
	return fmt.Sprintf("- [%s](%s): %s\n", title, at, strings.TrimSuffix(about, ":")), nil
}

// firstParagraph returns the first descriptive paragraph of a page, on one line and without links.
func firstParagraph(text string) string {
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		p := strings.Join(strings.Fields(paragraph), " ")
		p = generated.ReplaceAllString(p, "")
		if p == "" || strings.HasPrefix(p, "#") {
			continue
		}
		return mdLink.ReplaceAllString(p, "$1")
	}
	return ""
}
