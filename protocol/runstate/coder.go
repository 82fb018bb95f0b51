package runstate

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// errEncoding: the bytes are not an encoding of this version.
var errEncoding = errors.New("not an encoded run state")

// coder writes or reads values in one fixed order. Each type has one function for both
// directions, so that they cannot differ. An unset slice, map or pointer stays unset.
type coder struct {
	// buf is the output, or the rest of the input.
	buf     []byte
	reading bool
	// all is the whole input as one string; decoded strings are slices of it.
	all string
	err error
}

func (c *coder) fail() {
	if c.err == nil {
		c.err = errEncoding
	}
	c.buf, c.all = nil, ""
}

func (c *coder) int64(v *int64) {
	if !c.reading {
		c.buf = binary.AppendVarint(c.buf, *v)
		return
	}
	n, size := binary.Varint(c.buf)
	if size <= 0 {
		c.fail()
		return
	}
	*v, c.buf = n, c.buf[size:]
}

// integer codes any integer type.
func integer[T ~int | ~int64](c *coder, v *T) {
	n := int64(*v)
	c.int64(&n)
	*v = T(n)
}

func (c *coder) bool(v *bool) {
	n := int64(0)
	if *v {
		n = 1
	}
	if c.int64(&n); n != 0 && n != 1 {
		c.fail()
	}
	*v = n == 1
}

func (c *coder) float(v *float64) {
	if !c.reading {
		c.buf = binary.LittleEndian.AppendUint64(c.buf, math.Float64bits(*v))
		return
	}
	if len(c.buf) < 8 {
		c.fail()
		return
	}
	*v, c.buf = math.Float64frombits(binary.LittleEndian.Uint64(c.buf)), c.buf[8:]
}

// length encodes the length of a slice or map, or that it is unset. Each element takes at least one
// byte, so a length beyond the rest of the input is an error, not an allocation.
func (c *coder) length(n int, set bool) (int, bool) {
	v := int64(0)
	if set {
		v = int64(n) + 1
	}
	if c.int64(&v); v < 0 || c.reading && v-1 > int64(len(c.buf)) {
		c.fail()
		return 0, false
	}
	return int(max(v-1, 0)), v > 0
}

// text codes any string type.
func text[T ~string](c *coder, v *T) {
	n, _ := c.length(len(*v), true)
	if !c.reading {
		c.buf = append(c.buf, *v...)
		return
	}
	from := len(c.all) - len(c.buf)
	*v, c.buf = T(c.all[from:from+n]), c.buf[n:]
}

// raw codes a JSON document byte by byte. A document that is read shares memory with the input.
func (c *coder) raw(v *json.RawMessage) {
	n, set := c.length(len(*v), *v != nil)
	if !c.reading {
		c.buf = append(c.buf, *v...)
		return
	}
	if *v = nil; set {
		*v, c.buf = json.RawMessage(c.buf[:n:n]), c.buf[n:]
	}
}

// document codes a value through its JSON.
func document[T any](c *coder, v *T) {
	var doc json.RawMessage
	if !c.reading {
		b, err := json.Marshal(v)
		if err != nil && c.err == nil {
			c.err = fmt.Errorf("encode run state: %w", err)
		}
		doc = b
	}
	c.raw(&doc)
	if c.reading && c.err == nil && json.Unmarshal(doc, v) != nil {
		c.fail()
	}
}

func slice[T any](c *coder, v *[]T, each func(*coder, *T)) {
	n, set := c.length(len(*v), *v != nil)
	if c.reading {
		if *v = nil; set {
			*v = make([]T, n)
		}
	}
	for i := range *v {
		if each(c, &(*v)[i]); c.err != nil {
			return
		}
	}
}

func pointer[T any](c *coder, v **T, each func(*coder, *T)) {
	set := *v != nil
	c.bool(&set)
	if c.reading {
		if *v = nil; set && c.err == nil {
			*v = new(T)
		}
	}
	if *v != nil {
		each(c, *v)
	}
}

// table codes a map in the order of its keys.
func table[V any](c *coder, v *map[string]V, each func(*coder, *V)) {
	n, set := c.length(len(*v), *v != nil)
	if !c.reading {
		for _, k := range slices.Sorted(maps.Keys(*v)) {
			e := (*v)[k]
			text(c, &k)
			each(c, &e)
		}
		return
	}
	if *v = nil; !set {
		return
	}
	*v = make(map[string]V, n)
	for range n {
		var (
			k string
			e V
		)
		text(c, &k)
		if each(c, &e); c.err != nil {
			return
		}
		(*v)[k] = e
	}
}

// value encodes the target of a pointer that is always set.
func value[T any](c *coder, v **T, each func(*coder, *T)) {
	if c.reading {
		*v = new(T)
	}
	each(c, *v)
}
