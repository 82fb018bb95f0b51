package runs

import (
	"path"
	"slices"
	"strings"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/protocol/suggest"
	"waybill.dev/waybill/protocol/wire"
)

// wanted selects events by type and by group. Empty values select all.
type wanted struct {
	types []string
	group string
}

// check rejects types that no event can have. Without it, a typo looks like a run without events.
func (w wanted) check() error {
	for _, t := range w.types {
		if _, err := path.Match(t, ""); err != nil {
			return exit.Usagef("--type %q: %w", t, err)
		}
		if !possible(t) {
			return exit.Usagef("--type %q: no such event type%s", t, meant(t))
		}
	}
	if all := groups(); w.group != "" && !slices.Contains(all, w.group) {
		return exit.Usagef("--group %q: want %s", w.group, strings.Join(all, ", "))
	}
	return nil
}

// special are the special characters of patterns.
const special = `*?[]\`

// possible reports whether an event can have a type, or one that matches a pattern: a type of the
// protocol, or any valid type of a vendor.
func possible(t string) bool {
	if !strings.ContainsAny(t, special) {
		return wire.EventType(t).Known()
	}
	head, _, _ := strings.Cut(t, ".")
	return strings.ContainsAny(head, special) || wire.EventType(head+".event").Known() ||
		slices.ContainsFunc(wire.EventTypes(), func(known wire.EventType) bool {
			ok, err := path.Match(t, string(known))
			return ok && err == nil
		})
}

// meant suggests similar types, or describes valid ones.
func meant(t string) string {
	var known []string
	for _, k := range wire.EventTypes() {
		known = append(known, string(k))
	}
	plain := strings.Trim(strings.NewReplacer("*", "", "?", "").Replace(t), ".")
	if all := suggest.Names(plain, known, 3); len(all) > 0 {
		return "; did you mean " + strings.Join(all, " or ") + "?"
	}
	return "; want a type listed by waybill explain, or a vendor's type such as acme.invoice.sent"
}

// groups returns the groups of event types, sorted.
func groups() (all []string) {
	for _, t := range wire.EventTypes() {
		row, _ := t.Describe()
		all = append(all, string(row.Group))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fits reports whether an event is selected.
func (w wanted) fits(e client.Event) bool {
	if row, _ := e.Type.Describe(); w.group != "" && string(row.Group) != w.group {
		return false
	}
	return len(w.types) == 0 || slices.ContainsFunc(w.types, func(t string) bool {
		ok, err := path.Match(t, string(e.Type))
		return ok && err == nil
	})
}
