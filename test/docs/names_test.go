package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	testName = regexp.MustCompile(`^(?:Test|Fuzz|Benchmark)[A-Z]\w*$`) // or the beginning of several names
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	// generated are folders that a target fills and git ignores.
	generated = regexp.MustCompile(`^console/web/(?:pictures|node_modules)\b`)
	// repoPath does not match the paths of test seams, such as test/reset.
	repoPath = regexp.MustCompile(`^(?:bench|client|cmd|console|deploy|docs|examples|internal|proto|protocol|services|test/\w+|tools)/[\w./-]+$`)
)

// notTests are names of the code that look like names of tests.
var notTests = []string{"TestSeams"}

// testFuncs returns the names of all tests in the repository.
func testFuncs(t *testing.T) []string {
	t.Helper()
	var out []string
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && file != root) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(file)
		for _, m := range testFunc.FindAllSubmatch(b, -1) {
			out = append(out, string(m[1]))
		}
		return err
	}))
	return out
}

// unknownNames returns the pages' code spans that name a test or a path that does not exist.
func unknownNames(all []page, tests []string) []string {
	known := func(name string) bool {
		return slices.Contains(notTests, name) || slices.ContainsFunc(tests, func(test string) bool { return strings.HasPrefix(test, name) })
	}
	var unknown []string
	for _, p := range all {
		for i, line := range strings.Split(p.text, "\n") {
			if p.prose[i] == "" { // in a code block
				continue
			}
			for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
				name := m[1]
				if generated.MatchString(name) {
					continue
				}
				_, err := os.Stat(filepath.Join(root, name))
				if testName.MatchString(name) && !known(name) || repoPath.MatchString(name) && err != nil {
					unknown = append(unknown, fmt.Sprintf("%s:%d: %s", p.path, i+1, name))
				}
			}
		}
	}
	return unknown
}

// A test, a file or a folder that a page names exists.
func TestNames_InPagesExist(t *testing.T) {
	t.Parallel()
	require.Empty(t, unknownNames(pages(t), testFuncs(t)))
}

func TestNames_FindsUnknownOnes(t *testing.T) {
	t.Parallel()
	p := parse(t, "docs/one.md", "# One\n\nSee `TestNames_InPagesExist`, `TestGone` in `test/docs` and `services/gone/x.go`.\n")
	require.Equal(t, []string{"docs/one.md:3: TestGone", "docs/one.md:3: services/gone/x.go"}, unknownNames([]page{p}, testFuncs(t)))
}
