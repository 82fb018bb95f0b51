package prompt

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/mod/semver"

	"waybill.dev/waybill/protocol/fault"
)

// Library holds templates. It is safe for concurrent use; the nil library is empty.
type Library struct {
	current atomic.Pointer[templates]
}

// templates holds the versions of each template, newest first.
type templates map[string][]*Template

// byID returns the templates; nil for the nil library.
func (l *Library) byID() templates {
	if l == nil {
		return nil
	}
	if t := l.current.Load(); t != nil {
		return *t
	}
	return nil
}

// Replace replaces the templates by those of another library.
func (l *Library) Replace(by *Library) {
	t := by.byID()
	l.current.Store(&t)
}

// NewLibrary builds a library. A template id may come from one library only, so that a reference is
// unambiguous. The error joins a *CollisionError for each collision.
func NewLibrary(list ...*Template) (*Library, error) {
	all := templates{}
	var errs []error
	for _, t := range list {
		if err := all.add(t); err != nil {
			errs = append(errs, err)
		}
	}
	for _, versions := range all {
		slices.SortFunc(versions, newerFirst)
	}
	l := &Library{}
	l.current.Store(&all)
	return l, errors.Join(errs...)
}

// CollisionError means that a template cannot join a library because of another one.
type CollisionError struct {
	Template *Template
	message  string
}

// Error names both templates.
func (e *CollisionError) Error() string { return e.message }

func (all templates) add(t *Template) error {
	for _, other := range all[t.ID] {
		switch {
		case other.Library != t.Library:
			return &CollisionError{t, fmt.Sprintf("template %s of library %s: library %s has templates of this id; rename one of the two", t.ID, t.Library, other.Library)}
		case other.Version == t.Version:
			return &CollisionError{t, fmt.Sprintf("template %s: version %s is there twice; keep one of the two, or give the other another version", t.ID, t.Version)}
		}
	}
	all[t.ID] = append(all[t.ID], t)
	return nil
}

// newerFirst sorts releases before pre-releases, and newer before older versions.
func newerFirst(a, b *Template) int {
	if pre := semver.Prerelease(a.semver()) != ""; pre != (semver.Prerelease(b.semver()) != "") {
		if pre {
			return 1
		}
		return -1
	}
	return cmp.Or(semver.Compare(b.semver(), a.semver()), strings.Compare(b.Version, a.Version))
}

// With returns the library with additional templates.
func (l *Library) With(more ...*Template) (*Library, error) {
	var all []*Template
	own := l.byID()
	for _, id := range slices.Sorted(maps.Keys(own)) {
		all = append(all, own[id]...)
	}
	return NewLibrary(append(all, more...)...)
}

// Empty reports whether there are no templates.
func (l *Library) Empty() bool { return len(l.byID()) == 0 }

// Has reports whether a template id exists.
func (l *Library) Has(id string) bool { return len(l.byID()[id]) > 0 }

// Find returns the template of a reference: the named version, else the newest release, else the
// newest pre-release.
func (l *Library) Find(r Ref) (*Template, *fault.Error) {
	versions := l.byID()[r.ID]
	if len(versions) == 0 {
		return nil, fault.New(fault.TemplateNotFound, "this host has no prompt template %q; load it with --prompts, or with a pack", r.ID)
	}
	if r.Library != "" && r.Library != versions[0].Library {
		return nil, fault.New(fault.TemplateNotFound, "the template %q is of the library %s, not of %s", r.ID, versions[0].Library, r.Library)
	}
	var there []string
	for _, t := range versions {
		if r.Version == "" || r.Version == t.Version {
			return t, nil
		}
		there = append(there, t.Version)
	}
	return nil, fault.New(fault.TemplateNotFound, "the template %q has no version %s here; there are %v", r.ID, r.Version, there)
}
