package strictjson

// Cursor reads a document in one pass, member by member, and takes what encoding/json takes but for
// bytes that are not UTF-8 and what is nested more than 1,024 deep: a name may come twice in an object, and half of a surrogate pair reads as
// U+FFFD. What it is not asked for is passed over. Begin one with Reading, and ask Sound at the end.
type Cursor struct {
	s   scanner
	bad bool
}

// Reading is a cursor at the beginning of a document, which has to stay as it is meanwhile.
func Reading(b []byte) Cursor {
	return Cursor{s: scanner{b: b, maxDepth: stored.MaxDepth, loose: true}}
}

// Sound reports whether the whole document was read, and every value was of the kind that was
// asked for.
func (c *Cursor) Sound() bool {
	c.s.space()
	return !c.bad && c.s.i == len(c.s.b)
}

// Value passes over the next value and gives it as it is written, a part of the document; nil when
// it is not sound.
func (c *Cursor) Value() []byte {
	c.s.space()
	start := c.s.i
	if c.bad || c.s.value(1) != nil {
		c.bad = true
		return nil
	}
	return c.s.b[start:c.s.i:c.s.i]
}

// Set stores the next value as the function of that name does; one of another type makes the document
// unsound.
func (c *Cursor) Set(target any) {
	if value := c.Value(); value != nil && !Set(value, target) {
		c.bad = true
	}
}

// Null passes over the next value if it is null, and reports whether it was.
func (c *Cursor) Null() bool {
	if c.s.space(); c.bad || c.s.peek() != 'n' {
		return false
	}
	c.bad = c.s.word("null") != nil
	return !c.bad
}

// Text reads the next value, a text.
func (c *Cursor) Text() string {
	if c.s.space(); c.bad || c.s.peek() != '"' {
		c.bad = true
		return ""
	}
	span, err := c.s.text()
	if err != nil {
		c.bad = true
		return ""
	}
	return span.decode(c.s.b)
}

// Object reads the next value, an object: member is called in their order with the name of each, and
// may read its value.
func (c *Cursor) Object(member func(name []byte)) {
	c.parts('{', '}', func() {
		if c.s.peek() != '"' {
			c.bad = true
			return
		}
		name, err := c.s.text()
		if err != nil {
			c.bad = true
			return
		}
		if c.s.space(); c.s.peek() != ':' {
			c.bad = true
			return
		}
		c.s.i++
		c.s.space()
		start := c.s.i
		if name.escaped {
			member([]byte(name.decode(c.s.b)))
		} else {
			member(name.raw(c.s.b))
		}
		if !c.bad && c.s.i == start {
			c.Value()
		}
	})
}

// Array reads the next value, an array: item is called for each value, and may read it.
func (c *Cursor) Array(item func()) {
	c.parts('[', ']', func() {
		start := c.s.i
		if item(); !c.bad && c.s.i == start {
			c.Value()
		}
	})
}

// parts reads from an opening to a closing mark, one part after the other.
func (c *Cursor) parts(opens, closes byte, part func()) {
	if c.s.space(); c.bad || c.s.peek() != opens {
		c.bad = true
		return
	}
	c.s.i++
	if c.s.space(); c.s.peek() != closes {
		for {
			c.s.space()
			if part(); c.bad {
				return
			}
			if c.s.space(); c.s.peek() != ',' {
				break
			}
			c.s.i++
		}
	}
	if c.s.peek() != closes {
		c.bad = true
		return
	}
	c.s.i++
}

// Each gives the members of an object in their order, each as its name and its value: as they are
// written, parts of b, but for a name with escapes. ok is false if b is no object or not sound; what
// came before was given all the same. It reads b once and keeps nothing. Of a name twice it makes
// nothing: both are given.
func Each(b []byte, visit func(name, value []byte)) (ok bool) {
	c := Reading(b)
	c.Object(func(name []byte) {
		if value := c.Value(); value != nil {
			visit(name, value)
		}
	})
	return c.Sound()
}
