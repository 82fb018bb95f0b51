package projection

import "bytes"

// object reads an object, and removes or replaces members of it.
func (r *restorer) object(n *node) *AnswerError {
	r.i++
	var c cutter
	var others *otherMembers
	if n.rest != nil {
		others = &otherMembers{seen: map[string]bool{}}
	}
	for comma := r.i; r.next('}'); comma = r.i {
		from := r.i
		name := r.name()
		i, known := n.bySent[string(name)]
		switch {
		case known && r.kind() == nulls && n.members[i].dropsNull():
			r.skip()
			c.drop(r, from)
			continue
		case others != nil && string(name) == n.restAs:
			inner, err := r.others(n)
			if err != nil {
				return err.under(string(name))
			}
			if len(inner) == 0 {
				c.drop(r, from)
				continue
			}
			others.inner = inner
			c.keep(r, comma, from)
			r.replace(from, r.i, inner)
		default:
			c.keep(r, comma, from)
			if known {
				r.rename(n.members[i], from)
			}
			if others != nil {
				others.seen[n.sourceName(string(name))] = true
			}
			if err := r.member(n, i, known); err != nil {
				return err.under(string(name))
			}
		}
		c.kept, c.end = true, r.i
	}
	c.close(r)
	return others.apart(n.restAs)
}

// rename restores the name of a member that was sent under another one.
func (r *restorer) rename(m member, from int) {
	if m.sent == m.name {
		return
	}
	s := scanner{src: r.src, i: from}
	s.literal()
	r.replace(from, s.i, appendText(nil, m.name))
}

// sourceName returns the name in the schema of a member of an answer.
func (n *node) sourceName(sent string) string {
	if i, ok := n.bySent[sent]; ok {
		return n.members[i].name
	}
	return sent
}

func (r *restorer) member(n *node, i int, known bool) *AnswerError {
	if !known {
		r.skip()
		return nil
	}
	return r.value(n.members[i].node)
}

// cutter removes members from an object and keeps the commas correct.
type cutter struct {
	kept    bool // a member was kept
	end     int  // end of the last kept member, else start of the first
	dropped int  // end of the last dropped member; 0: none pending
}

// drop records a removed member.
func (c *cutter) drop(r *restorer, from int) {
	if !c.kept && c.dropped == 0 {
		c.end = from
	}
	c.dropped = r.i
}

// keep records a kept member, and the comma before it.
func (c *cutter) keep(r *restorer, comma, from int) {
	if c.dropped == 0 {
		return
	}
	if c.kept {
		r.replace(c.end, comma, nil)
	} else {
		r.replace(c.end, from, nil)
	}
	c.dropped = 0
}

// close records the end of the object.
func (c *cutter) close(r *restorer) {
	if c.dropped != 0 {
		r.replace(c.end, c.dropped, nil)
	}
}

// others returns the inside of the object of unnamed members; empty for null.
func (r *restorer) others(n *node) ([]byte, *AnswerError) {
	if r.kind() == nulls {
		r.skip()
		return nil, nil
	}
	object, err := r.restored(n.rest)
	if err != nil {
		return nil, err
	}
	if (&scanner{src: object}).kind() != objects {
		return nil, &AnswerError{Reason: "want what the description of this member says, or null"}
	}
	return bytes.Trim(object[1:len(object)-1], " \t\r\n"), nil
}

// otherMembers are the members unnamed in the schema. They are moved next to the named ones.
type otherMembers struct {
	seen  map[string]bool
	inner []byte
}

// apart rejects a name that would occur twice.
func (o *otherMembers) apart(as string) *AnswerError {
	if o == nil || o.inner == nil {
		return nil
	}
	s := scanner{src: append(append([]byte{'{'}, o.inner...), '}')}
	for s.i = 1; s.next('}'); s.skip() {
		if name := string(s.name()); o.seen[name] {
			return (&AnswerError{Reason: "the member is repeated outside; want it once"}).under(name).under(as)
		}
	}
	return nil
}
