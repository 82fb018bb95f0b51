package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// pkg is the output of `go list -json` for a package.
type pkg struct {
	ImportPath, Name, Dir, Doc string
	GoFiles, Imports           []string
	TestGoFiles, TestImports   []string
	XTestGoFiles, XTestImports []string
	Standard                   bool
}

// files are all files of the package, including its tests.
func (p pkg) files() []string { return slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) }

const fields = "ImportPath,Name,Dir,Doc,Standard,GoFiles,Imports,TestGoFiles,TestImports,XTestGoFiles,XTestImports"

// listed reads, once, the packages of all modules of the workspace and all their dependencies.
var listed = sync.OnceValues(func() (map[string]pkg, error) {
	cmd := exec.Command("go", "list", "-deps", "-json="+fields, "work") //nolint:noctx // bounded by the test's timeout
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(err, errors.New(stderr.String()))
	}
	all := map[string]pkg{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all[p.ImportPath] = p
	}
})

// packages are all packages; ours are those of this repository, sorted.
func packages(t *testing.T) (all map[string]pkg, ours []pkg) {
	t.Helper()
	all, err := listed()
	require.NoError(t, err)
	for path, p := range all {
		if under([]string{root}, path) && len(p.files()) > 0 {
			ours = append(ours, p)
		}
	}
	require.Greater(t, len(ours), 30, "go list found too few packages: is this the workspace?")
	slices.SortFunc(ours, func(a, b pkg) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return all, ours
}

// broken returns the chains of imports that break a rule, as "a → b → c".
func broken(r rule, all map[string]pkg) []string {
	var out []string
	for path, p := range all {
		if !r.appliesTo(path) {
			continue
		}
		for _, to := range p.Imports {
			if under(r.direct, to) && !under(r.except, to) || r.only != nil && foreign(to, all) && !under(r.only, to) {
				out = append(out, path+" → "+to)
			}
		}
		if chain := reach(r.reached, path, all); len(chain) > 2 { // shorter ones are direct
			out = append(out, strings.Join(chain, " → "))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// foreign reports whether a package is neither ours nor the standard library's.
func foreign(path string, all map[string]pkg) bool {
	return path != "C" && !under([]string{root}, path) && !all[path].Standard
}

// reach returns the shortest chain of imports from a package to a forbidden one, or nil.
func reach(forbidden []string, from string, all map[string]pkg) []string {
	came := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at != from && under(forbidden, at) {
			var chain []string
			for ; at != ""; at = came[at] {
				chain = append(chain, at)
			}
			slices.Reverse(chain)
			return chain
		}
		for _, to := range all[at].Imports {
			if _, seen := came[to]; !seen {
				came[to] = at
				queue = append(queue, to)
			}
		}
	}
	return nil
}

func TestImports_FollowTheRules(t *testing.T) {
	t.Parallel()
	all, _ := packages(t)
	for _, r := range rules() {
		for _, chain := range broken(r, all) {
			t.Errorf("%s:\n\t%s", r.name, chain)
		}
	}
}

// A rule without packages is useless: its packages were moved, and the rule was not.
func TestRules_EachAppliesToAPackage(t *testing.T) {
	t.Parallel()
	all, _ := packages(t)
	for _, r := range rules() {
		for _, from := range r.from {
			one := rule{from: []string{from}}
			found := false
			for path := range all {
				found = found || one.appliesTo(path)
			}
			require.True(t, found, "%s: there is no package %s", r.name, from)
		}
	}
}

func TestBroken_PrintsTheForbiddenChain(t *testing.T) {
	t.Parallel()
	imports := func(to ...string) pkg { return pkg{Imports: to} }
	all := map[string]pkg{
		root + "/services/redactor/redact": imports(root+"/services/redactor/words", "fmt"),
		root + "/services/redactor/words":  imports("google.golang.org/grpc/codes"),
		root + "/services/gateway/runview": imports("net/http"),
		root + "/services/gateway/logtest": imports("net/http"),
		"fmt":                              {Standard: true},
		"net/http":                         {Standard: true},
	}
	for _, tc := range []struct {
		name string
		rule rule
		want []string
	}{
		{
			"a direct import",
			rule{from: []string{"services/gateway/..."}, direct: transports},
			[]string{root + "/services/gateway/runview → net/http"},
		},
		{
			"a detour",
			rule{from: []string{"services/redactor/redact"}, direct: transports, reached: transports},
			[]string{root + "/services/redactor/redact → " + root + "/services/redactor/words → google.golang.org/grpc/codes"},
		},
		{
			"an exception",
			rule{
				from:   []string{"services/..."},
				but:    []string{"services/gateway/runview", "services/redactor/words"},
				direct: transports,
			},
			nil,
		},
		{
			"a module that is not allowed",
			rule{from: []string{"services/redactor/..."}, only: []string{"github.com/dlclark/regexp2"}},
			[]string{root + "/services/redactor/words → google.golang.org/grpc/codes"},
		},
		{"a package with a similar name", rule{from: []string{"services/gateway/runv"}, direct: transports}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, broken(tc.rule, all))
		})
	}
}

func TestPackages_AreNamedAfterWhatTheyDo(t *testing.T) {
	t.Parallel()
	_, ours := packages(t)
	empty := []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "lib"}
	for _, p := range ours {
		for part := range strings.SplitSeq(strings.TrimPrefix(p.ImportPath, root), "/") {
			require.NotContains(t, empty, part, p.ImportPath)
		}
		require.NotContains(t, empty, p.Name, p.ImportPath)
	}
}

func TestPackages_HaveAPackageComment(t *testing.T) {
	t.Parallel()
	_, ours := packages(t)
	for _, p := range ours {
		if len(p.GoFiles) > 0 && generated(t, filepath.Join(p.Dir, p.GoFiles[0])) {
			continue
		}
		if p.Doc == "" && !slices.ContainsFunc(p.files(), func(f string) bool { return commented(t, filepath.Join(p.Dir, f)) }) {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// commented reports whether a file has the package comment. `go list` prints none for packages with
// tests only.
func commented(t *testing.T, file string) bool {
	head, _, found := bytes.Cut(read(t, file), []byte("\npackage "))
	return found && bytes.Contains(append([]byte("\n"), head...), []byte("\n// Package "))
}

// Four places import several services: the host that composes them, the benchmark of the acceptor's
// pipeline with the redactor's engine, the test that simulates the engine, and the test that compares
// recorded runs with the description of the API.
func TestServices_AreImportedTogetherByTheHostOnly(t *testing.T) {
	t.Parallel()
	_, ours := packages(t)
	for _, p := range ours {
		if under([]string{root + "/internal/host", root + "/bench", root + "/test/sim", root + "/test/golden"}, p.ImportPath) {
			continue
		}
		met := map[string]string{}
		for _, to := range slices.Concat([]string{p.ImportPath}, p.Imports, p.TestImports, p.XTestImports) {
			if rest, ok := strings.CutPrefix(to, root+"/services/"); ok {
				service, _, _ := strings.Cut(rest, "/")
				met[service] = to
			}
		}
		if len(met) > 1 {
			t.Errorf("%s imports several services: %v", p.ImportPath, met)
		}
	}
}

// maxLines is the maximum length of a file.
const maxLines = 500

func TestFiles_StayShort(t *testing.T) {
	t.Parallel()
	_, ours := packages(t)
	for _, p := range ours {
		for _, name := range p.files() {
			file := filepath.Join(p.Dir, name)
			if n := lines(t, file); n > maxLines && !generated(t, file) {
				t.Errorf("%s has %d lines; the limit is %d", file, n, maxLines)
			}
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file) //nolint:gosec // G304: a source file of this repository
	require.NoError(t, err)
	return b
}

func lines(t *testing.T, file string) int { return bytes.Count(read(t, file), []byte("\n")) }

// generated reports whether a file has the mark of a generator before its package clause.
func generated(t *testing.T, file string) bool {
	head, _, _ := bytes.Cut(read(t, file), []byte("\npackage "))
	return bytes.HasPrefix(head, []byte("// Code generated ")) || bytes.Contains(head, []byte("\n// Code generated "))
}
