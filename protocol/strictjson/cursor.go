package strictjson

// Cursor reads a document in one pass, member by member. It accepts what encoding/json accepts,
// except invalid UTF-8 and nesting deeper than 1,024: repeated names are accepted, and a lone
// surrogate reads as U+FFFD. Values that are not read are skipped. Create one with Reading and
// check
// Sound at the end.
type Cursor struct {
	s   scanner
	bad bool
}

// Reading returns a cursor at the start of a document, which must not change while it is read.
func Reading(b []byte) Cursor {
	return Cursor{s: scanner{b: b, maxDepth: stored.MaxDepth, loose: true}}
}

// Sound reports whether the whole document was read and every value had the requested type.
func (c *Cursor) Sound() bool {
	c.s.space()
	return !c.bad && c.s.i == len(c.s.b)
}

// Value skips the next value and returns its bytes, a slice of the document; nil if it is invalid.
func (c *Cursor) Value() []byte {
	c.s.space()
	start := c.s.i
	if c.bad || c.s.value(1) != nil {
		c.bad = true
		return nil
	}
	return c.s.b[start:c.s.i:c.s.i]
}

// Set stores the next value as the function Set does. A value of another type makes the document
// unsound.
func (c *Cursor) Set(target any) {
	if value := c.Value(); value != nil && !Set(value, target) {
		c.bad = true
	}
}

// Null skips the next value if it is null, and reports whether it was.
func (c *Cursor) Null() bool {
	if c.s.space(); c.bad || c.s.peek() != 'n' {
		return false
	}
	c.bad = c.s.word("null") != nil
	return !c.bad
}

// Text reads the next value as a string.
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

// Object reads the next value as an object. It calls member with each name in order; member may
// read the value.
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

// Array reads the next value as an array. It calls item for each element; item may read it.
func (c *Cursor) Array(item func()) {
	c.parts('[', ']', func() {
		start := c.s.i
		if item(); !c.bad && c.s.i == start {
			c.Value()
		}
	})
}

// parts reads from an opening to a closing bracket, one part after the other.
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

// Each visits the members of an object in order. Name and value are slices of b, except names with
// escapes. ok is false if b is not an object or invalid; earlier members have been visited then. It
// reads b once and retains nothing. It visits repeated names each time.
func Each(b []byte, visit func(name, value []byte)) (ok bool) {
	c := Reading(b)
	c.Object(func(name []byte) {
		if value := c.Value(); value != nil {
			visit(name, value)
		}
	})
	return c.Sound()
}
