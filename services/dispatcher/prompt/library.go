package prompt

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"waybill.dev/waybill/protocol/fault"
)

// Library holds templates. It is immutable; the nil library is empty.
type Library struct {
	// byID has the versions of each template, newest first.
	byID map[string][]*Template
}

// NewLibrary puts templates together. An id belongs to one library, so that a reference
// means one text; all collisions are told.
func NewLibrary(templates ...*Template) (*Library, error) {
	l := &Library{byID: map[string][]*Template{}}
	var errs []error
	for _, t := range templates {
		if err := l.add(t); err != nil {
			errs = append(errs, err)
		}
	}
	for _, versions := range l.byID {
		slices.SortFunc(versions, newerFirst)
	}
	return l, errors.Join(errs...)
}

func (l *Library) add(t *Template) error {
	for _, other := range l.byID[t.ID] {
		switch {
		case other.Library != t.Library:
			return fmt.Errorf("template %s of library %s: library %s has templates of this id; rename one of the two", t.ID, t.Library, other.Library)
		case other.Version == t.Version:
			return fmt.Errorf("template %s: version %s is there twice; keep one of the two, or give the other another version", t.ID, t.Version)
		}
	}
	l.byID[t.ID] = append(l.byID[t.ID], t)
	return nil
}

// newerFirst puts releases before what leads up to any, and the newer before the older.
func newerFirst(a, b *Template) int {
	if pre := semver.Prerelease(a.semver()) != ""; pre != (semver.Prerelease(b.semver()) != "") {
		if pre {
			return 1
		}
		return -1
	}
	return cmp.Or(semver.Compare(b.semver(), a.semver()), strings.Compare(b.Version, a.Version))
}

// With is the library with further templates.
func (l *Library) With(more ...*Template) (*Library, error) {
	var all []*Template
	if l != nil {
		for _, id := range slices.Sorted(maps.Keys(l.byID)) {
			all = append(all, l.byID[id]...)
		}
	}
	return NewLibrary(append(all, more...)...)
}

// Empty reports that there are no templates.
func (l *Library) Empty() bool { return l == nil || len(l.byID) == 0 }

// Has reports whether there is a template of an id.
func (l *Library) Has(id string) bool { return l != nil && len(l.byID[id]) > 0 }

// Find gives the template that a reference means: of the version it names, else the
// newest release, else the newest of what leads up to one.
func (l *Library) Find(r Ref) (*Template, *fault.Error) {
	if !l.Has(r.ID) {
		return nil, fault.New(fault.TemplateNotFound, "this host has no prompt template %q; load it with --prompts, or with a pack", r.ID)
	}
	versions := l.byID[r.ID]
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
