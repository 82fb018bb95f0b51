package projection

import (
	"fmt"
	"strconv"
	"strings"
)

// nameMembers sets the names that are sent for the members of an object: their own, unless the vendor
// rejects it.
func (b *builder) nameMembers(n *node) {
	n.bySent = make(map[string]int, len(n.members))
	taken := map[string]bool{n.restAs: n.rest != nil}
	accepted := func(name string) bool { return b.dialect.Names == nil || b.dialect.Names.MatchString(name) }
	for i := range n.members {
		if m := &n.members[i]; accepted(m.name) {
			m.sent, taken[m.name] = m.name, true
			n.bySent[m.name] = i
		}
	}
	for i := range n.members {
		m := &n.members[i]
		if !accepted(m.name) {
			m.sent = plainName(m.name, taken)
			taken[m.sent] = true
			n.bySent[m.sent] = i
			m.node.notes = append(m.node.notes, "Its name is "+strconv.Quote(m.name)+".")
			b.rewrite(n.at, []string{"properties", m.name}, RewriteName, "sent as %s, because names of properties must match %s",
				m.sent, b.dialect.Names)
		}
	}
}

// maxName is the length of a name that replaces another, without the number that makes it unique.
const maxName = 56

// plainName returns a name of letters, digits and _ that is not taken.
func plainName(name string, taken map[string]bool) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	plain = plain[:min(len(plain), maxName)]
	if plain == "" {
		plain = "_"
	}
	out := plain
	for i := 2; taken[out]; i++ {
		out = fmt.Sprintf("%s_%d", plain, i)
	}
	return out
}
