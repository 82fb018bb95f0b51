package docs

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	link    = regexp.MustCompile(`(!?)\[([^\]]*)\]\(([^)\s]+)\)`)
	image   = regexp.MustCompile(`<img\b[^>]*>`)
	altText = regexp.MustCompile(`\balt="[^"]+"`)
	heading = regexp.MustCompile(`^#{1,6} (.+)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// anchors are the link targets within a page.
func (p page) anchors() map[string]bool {
	out := map[string]bool{}
	lines := strings.Split(p.text, "\n")
	for i := range p.prose {
		m := heading.FindStringSubmatch(lines[i])
		if m == nil || p.prose[i] == "" {
			continue
		}
		words := link.ReplaceAllString(strings.ReplaceAll(m[1], "`", ""), "$2")
		out[strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(words), ""), " ", "-")] = true
	}
	return out
}

// deadLinks returns the pages' links without a target.
func deadLinks(all []page) []string {
	var dead []string
	anchors := map[string]map[string]bool{}
	for _, p := range all {
		anchors[p.path] = p.anchors()
	}
	for _, p := range all {
		for i, line := range p.prose {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				target, anchor, _ := strings.Cut(m[3], "#")
				if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
					continue // external links are not checked
				}
				to := p.path
				if target != "" {
					to = path.Join(path.Dir(p.path), target)
				}
				_, err := os.Stat(filepath.Join(root, to))
				places, known := anchors[to]
				if (err != nil && !known) || (known && anchor != "" && !places[anchor]) {
					dead = append(dead, fmt.Sprintf("%s:%d: %s", p.path, i+1, m[3]))
				}
			}
		}
	}
	return dead
}

func TestLinks_AreNotBroken(t *testing.T) {
	t.Parallel()
	require.Empty(t, deadLinks(pages(t)))
}

func TestLinks_FindsBrokenLinks(t *testing.T) {
	t.Parallel()
	one := parse(t, "docs/one.md", "# One\n\n## The `log`, again\n\n[a](two.md) [b](three.md)\n[c](#the-log-again) [d](#nowhere) `[e](f.md)` [g](../Makefile)\n\n```text\n# No heading\n[h](i.md)\n```\n[j](#no-heading)\n")
	two := parse(t, "docs/two.md", "[k](one.md#the-log-again) [l](one.md#other) [m](https://example.com/x.md)\n")
	require.Equal(t, []string{"docs/one.md:5: three.md", "docs/one.md:6: #nowhere", "docs/one.md:12: #no-heading", "docs/two.md:1: one.md#other"}, deadLinks([]page{one, two}))
}

// Every page is listed in the index or llms.txt.
func TestIndex_NamesEveryPage(t *testing.T) {
	t.Parallel()
	all := pages(t)
	linked := map[string]map[string]bool{"docs/README.md": {}, "llms.txt": {}}
	for _, p := range all {
		for _, m := range link.FindAllStringSubmatch(strings.Join(p.prose, "\n"), -1) {
			if to := linked[p.path]; to != nil {
				to[path.Join(path.Dir(p.path), m[3])] = true
			}
		}
	}
	for _, p := range all {
		if !strings.HasPrefix(p.path, "docs/") || strings.HasPrefix(p.path, "docs/adr/") || p.path == "docs/README.md" {
			continue
		}
		for index, to := range linked {
			require.True(t, to[p.path], "%s does not name %s", index, p.path)
		}
	}
}

// The glossary links each word to its explanation.
func TestGlossary_LinksEachWordToItsPage(t *testing.T) {
	t.Parallel()
	words := []string{}
	for _, p := range pages(t) {
		if p.path != "docs/glossary.md" {
			continue
		}
		for _, line := range p.prose[slices.Index(p.prose, "|---|---|")+1:] {
			if cells := strings.Split(line, "|"); len(cells) == 4 {
				words = append(words, strings.TrimSuffix(strings.TrimSpace(cells[1]), " *"))
				require.Regexp(t, link, cells[2], words)
			}
		}
	}
	require.Greater(t, len(words), 40)
	require.True(t, slices.IsSorted(words), "%v", words)
}

// Every image has alternative text.
func TestImages_HaveAlternativeText(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for i, line := range p.prose {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				require.False(t, m[1] == "!" && strings.TrimSpace(m[2]) == "", "%s:%d: %s has no alternative text", p.path, i+1, m[3])
			}
			for _, tag := range image.FindAllString(line, -1) {
				require.Regexp(t, altText, tag, "%s:%d", p.path, i+1)
			}
		}
	}
}

// Generated pages are as long as their lists; the others have a length limit.
func TestPages_AreShort(t *testing.T) {
	t.Parallel()
	limits := map[string]int{"README.md": 200, "docs/getting-started.md": 200}
	for _, p := range pages(t) {
		if strings.Contains(p.text, "do not edit") {
			continue
		}
		limit, ok := limits[p.path]
		if !ok {
			limit = 450
		}
		require.LessOrEqual(t, strings.Count(p.text, "\n"), limit, "%s: lines", p.path)
	}
}

// The quickstart is one page: sixty lines.
func TestREADME_StartsOnOnePage(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		if p.path != "README.md" {
			continue
		}
		_, start, ok := strings.Cut(p.text, "\n## Start\n")
		require.True(t, ok)
		start, _, _ = strings.Cut(start, "\n## ")
		require.LessOrEqual(t, strings.Count(start, "\n"), 60)
	}
}
