package projection

import (
	"net/url"
	"strings"
)

// embed makes a schema document a part of another one, at a pointer: its references lead to where it
// is now. Ids and anchors, which may clash with those of other parts, are replaced by pointers.
func (v *value) embed(at string) {
	e := embedder{at: at, places: map[string]string{}}
	e.index(v, &url.URL{})
	e.repoint(v, &url.URL{})
}

// embedder resolves the references of a document.
type embedder struct {
	at string
	// places are the pointers of schemas in the document, by the address of an id or anchor.
	places map[string]string
}

// index records the ids and anchors of a schema and of those below it. base is the address of the
// surrounding schema.
func (e *embedder) index(v *value, base *url.URL) {
	base = v.base(base)
	if v.at == "" || v.get("$id") != nil {
		e.places[address(base, "")] = v.at
	}
	for _, name := range []string{"$anchor", "$dynamicAnchor"} {
		if a := v.get(name); a != nil && a.kind == strs {
			e.places[address(base, a.plain)] = v.at
		}
	}
	v.schemas(func(c *value, _, _ string, _ bool) { e.index(c, base) })
}

// repoint changes the references of a schema and of those below it, and removes its own ids.
func (e *embedder) repoint(v *value, base *url.URL) {
	if v.kind != objects {
		return
	}
	base = v.base(base)
	for i, f := range v.fields {
		if f.name != "$ref" && f.name != "$dynamicRef" || f.value.kind != strs {
			continue
		}
		if to, ok := e.resolve(base, f.value.plain); ok { // nothing outside the document changes a $dynamicRef
			v.fields[i] = field{"$ref", text(to)}
		}
	}
	v.schemas(func(c *value, _, _ string, _ bool) { e.repoint(c, base) })
	v.fields = v.without("$schema", "$id", "$anchor", "$dynamicAnchor").fields
}

// resolve returns a reference as a pointer; false if it leads out of the document.
func (e *embedder) resolve(base *url.URL, ref string) (string, bool) {
	u, err := url.Parse(ref)
	if err != nil {
		return "", false
	}
	u = base.ResolveReference(u)
	if below := u.Fragment; below == "" || below[0] == '/' {
		place, ok := e.places[address(u, "")]
		// The fragment stays as it is written, with its escapes.
		_, raw, _ := strings.Cut(ref, "#")
		return e.at + escapeFragment(place) + raw, ok
	}
	place, ok := e.places[address(u, u.Fragment)]
	return e.at + escapeFragment(place), ok
}

// base returns the address of a schema inside the schema with the address outer.
func (v *value) base(outer *url.URL) *url.URL {
	id := v.get("$id")
	if id == nil || id.kind != strs {
		return outer
	}
	u, err := url.Parse(id.plain)
	if err != nil {
		return outer
	}
	return outer.ResolveReference(u)
}

// address is the key of a place: an address with an anchor.
func address(base *url.URL, anchor string) string {
	u := *base
	u.Fragment, u.RawFragment = "", ""
	return u.String() + "#" + anchor
}

// escapeFragment encodes a pointer for a reference.
func escapeFragment(pointer string) string {
	return (&url.URL{Fragment: pointer}).String()[min(len(pointer), 1):]
}
