package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the top of the repository.
const root = "../.."

// page is one Markdown file.
type page struct {
	path   string // relative to root
	text   string
	blocks []block
	// prose is the text without code blocks, line by line.
	prose []string
}

// block is a fenced block of code.
type block struct {
	line int // line of its opening fence, from 1
	lang string
	text string
	// notRun and fragment are the reasons in the markers before it; empty if there is none.
	notRun, fragment string
}

var (
	fence  = regexp.MustCompile("^ {0,3}```([a-z]*)$")
	marker = regexp.MustCompile(`^<!-- (not run|fragment): (.+) -->$`)
	inline = regexp.MustCompile("`[^`]*`")
)

// pages are README.md, docs/ and the READMEs that they link to.
func pages(t *testing.T) []page {
	t.Helper()
	paths := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "llms.txt"}
	for _, dir := range []string{"docs", "deploy", "examples", "services"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if d != nil && d.Name() == "node_modules" {
				return filepath.SkipDir // other repositories' files
			}
			if err == nil && !d.IsDir() && filepath.Ext(path) == ".md" {
				rel, _ := filepath.Rel(root, path) // both are below root
				paths = append(paths, filepath.ToSlash(rel))
			}
			return err
		})
		require.NoError(t, err)
	}
	slices.Sort(paths)
	all := make([]page, len(paths))
	for i, path := range paths {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		all[i] = parse(t, path, string(text))
	}
	return all
}

// parse returns the blocks of a page.
func parse(t *testing.T, path, text string) page {
	t.Helper()
	p := page{path: path, text: text}
	var open *block
	var lines []string
	before := "" // the last non-empty line
	for i, line := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open == nil && m != nil:
			open, lines = &block{line: i + 1, lang: m[1]}, nil
			if k := marker.FindStringSubmatch(before); k != nil && k[1] == "not run" {
				open.notRun = k[2]
			} else if k != nil {
				open.fragment = k[2]
			}
		case open != nil && m != nil:
			require.Empty(t, m[1], "%s:%d: a fence within a block", path, i+1)
			open.text = strings.Join(lines, "\n") + "\n"
			p.blocks, open = append(p.blocks, *open), nil
		case open != nil:
			lines = append(lines, line)
		default:
			require.NotContains(t, line, "```", "%s:%d: a fence that no renderer takes for one", path, i+1)
			p.prose = append(p.prose, inline.ReplaceAllString(line, "`code`"))
		}
		if open != nil || m != nil {
			p.prose = append(p.prose, "") // keeps line numbers
		}
		if strings.TrimSpace(line) != "" {
			before = strings.TrimSpace(line)
		}
	}
	require.Nil(t, open, "%s: a block is not closed", path)
	return p
}

// of returns the blocks in these languages.
func (p page) of(langs ...string) []block {
	return slices.DeleteFunc(slices.Clone(p.blocks), func(b block) bool { return !slices.Contains(langs, b.lang) })
}
