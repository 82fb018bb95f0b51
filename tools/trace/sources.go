package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// sources lists the declarations of Go files. A folder is parsed on first use.
type sources struct {
	root    string
	folders map[string]*folder
}

// folder is the declarations of one folder.
type folder struct {
	err   error
	names map[string]map[string]bool // by file: functions, methods, types, constants, variables
	tests map[string]*test           // by function name
}

// test is a test function with the string literals of its file, which include the names of its
// subtests.
type test struct {
	body  ast.Node
	texts map[string]bool
}

func newSources(root string) *sources {
	return &sources{root: root, folders: map[string]*folder{}}
}

// hasCode checks a code reference: a path below the root, with #Name for one declaration.
func (s *sources) hasCode(ref string) error {
	path, name, named := strings.Cut(ref, "#")
	info, err := os.Stat(filepath.Join(s.root, path))
	if err != nil {
		return fmt.Errorf("code %s: there is no such file or folder", ref)
	}
	if !named {
		return nil
	}
	dir, file := filepath.Split(path)
	if info.IsDir() {
		dir, file = path, ""
	}
	f := s.folder(dir)
	if f.err != nil {
		return f.err
	}
	for in, names := range f.names {
		if (file == "" || in == file) && names[name] {
			return nil
		}
	}
	return fmt.Errorf("code %s: %s declares no %s", ref, path, name)
}

// hasTest checks a test reference: the package folder, #, the test's name, and /subtest for one
// case.
func (s *sources) hasTest(ref string) error {
	dir, name, ok := strings.Cut(ref, "#")
	if !ok {
		return fmt.Errorf("test %s: want folder#TestName", ref)
	}
	f := s.folder(dir)
	if f.err != nil {
		return f.err
	}
	name, sub, _ := strings.Cut(name, "/")
	t := f.tests[name]
	if t == nil {
		return fmt.Errorf("test %s: %s has no %s", ref, dir, name)
	}
	if isSkipped(t.body) {
		return fmt.Errorf("test %s: does nothing but skip", ref)
	}
	if sub != "" && !t.texts[spaced(sub)] {
		return fmt.Errorf("test %s: no case of the file of %s is called %q", ref, name, sub)
	}
	return nil
}

// folder parses the Go files of a folder.
func (s *sources) folder(dir string) *folder {
	dir = filepath.Clean(dir)
	if f := s.folders[dir]; f != nil {
		return f
	}
	f := &folder{names: map[string]map[string]bool{}, tests: map[string]*test{}}
	s.folders[dir] = f
	entries, err := os.ReadDir(filepath.Join(s.root, dir))
	if err != nil {
		f.err = fmt.Errorf("%s: there is no such folder", dir)
		return f
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(s.root, dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			f.err = err
			return f
		}
		f.add(e.Name(), file)
	}
	return f
}

var isTest = regexp.MustCompile(`^(Test|Fuzz)\w+$`)

// add records the declarations of one file.
func (f *folder) add(name string, file *ast.File) {
	names := map[string]bool{}
	f.names[name] = names
	var texts map[string]bool
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[d.Name.Name] = true
			if strings.HasSuffix(name, "_test.go") && d.Recv == nil && isTest.MatchString(d.Name.Name) {
				if texts == nil {
					texts = textsOf(file)
				}
				f.tests[d.Name.Name] = &test{body: d.Body, texts: texts}
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names[spec.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						names[n.Name] = true
					}
				}
			}
		}
	}
}

// textsOf returns the string literals of a file in the form of subtest names.
func textsOf(file *ast.File) map[string]bool {
	out := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				out[spaced(s)] = true
			}
		}
		return true
	})
	return out
}

// spaced converts a name to the form that `go test` prints.
func spaced(s string) string { return strings.ReplaceAll(s, " ", "_") }

// isSkipped reports whether a test starts with a skip.
func isSkipped(body ast.Node) bool {
	block, ok := body.(*ast.BlockStmt)
	if !ok || block == nil || len(block.List) == 0 {
		return true
	}
	stmt, ok := block.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := stmt.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && strings.HasPrefix(sel.Sel.Name, "Skip")
}
