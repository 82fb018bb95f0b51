package runs

import (
	"path"
	"slices"
	"strings"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/suggest"
	"waybill.dev/waybill/protocol/wire"
)

// wanted are the events that somebody asks for: of these types, if there are any, and of this
// group, if it is not empty.
type wanted struct {
	types []string
	group string
}

// check refuses what no event can be: it would look as if the run had none.
func (w wanted) check() error {
	for _, t := range w.types {
		if _, err := path.Match(t, ""); err != nil {
			return exit.Usagef("--type %q: %w", t, err)
		}
		if !possible(t) {
			return exit.Usagef("--type %q: the protocol has no such event%s", t, meant(t))
		}
	}
	if all := groups(); w.group != "" && !slices.Contains(all, w.group) {
		return exit.Usagef("--group %q: want %s", w.group, strings.Join(all, ", "))
	}
	return nil
}

// special are the signs of patterns.
const special = `*?[]\`

// possible reports that an event may have a type, or one that a pattern fits: it is of the
// protocol, or may be a vendor's, of which nobody knows all.
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

// meant says which types may have been meant, or what would be right.
func meant(t string) string {
	var known []string
	for _, k := range wire.EventTypes() {
		known = append(known, string(k))
	}
	plain := strings.Trim(strings.NewReplacer("*", "", "?", "").Replace(t), ".")
	if all := suggest.Names(plain, known, 3); len(all) > 0 {
		return "; did you mean " + strings.Join(all, " or ") + "?"
	}
	return "; want one that waybill explain lists, or a vendor's such as acme.invoice.sent"
}

// groups are those of the event types there are, in the order of their names.
func groups() (all []string) {
	for _, t := range wire.EventTypes() {
		row, _ := t.Describe()
		all = append(all, string(row.Group))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fits reports an event that was asked for.
func (w wanted) fits(e client.Event) bool {
	if row, _ := e.Type.Describe(); w.group != "" && string(row.Group) != w.group {
		return false
	}
	return len(w.types) == 0 || slices.ContainsFunc(w.types, func(t string) bool {
		ok, err := path.Match(t, string(e.Type))
		return ok && err == nil
	})
}
