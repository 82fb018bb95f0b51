package runview

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
)

// ValueDiff is a difference of the states. A side without a value is omitted.
type ValueDiff struct {
	A json.RawMessage `json:"a,omitempty"`
	B json.RawMessage `json:"b,omitempty"`
}

// Limits of the state differences.
const (
	maxValues     = 500
	maxValueBytes = 8 << 10
)

// compared are the snapshot members that describe a run's course. Others identify it or hold
// times.
var compared = []string{"status", "inputs", "variables", "channels", "outputs", "error", "nodeStates"}

// states compares two snapshots. truncated means that the report omits differences.
func (c *Comparer) states(a, b []byte) (truncated bool) {
	va, _ := decode(a)
	vb, _ := decode(b)
	ma, _ := va.(map[string]any)
	mb, _ := vb.(map[string]any)
	for _, name := range compared {
		c.value("/"+name, member(ma, name), member(mb, name))
	}
	if len(c.report.StateDiff) <= maxValues {
		return false
	}
	for _, pointer := range slices.Sorted(maps.Keys(c.report.StateDiff))[maxValues:] {
		delete(c.report.StateDiff, pointer)
	}
	return true
}

// absent stands for a missing member, unlike null.
type absent struct{}

func member(m map[string]any, name string) any {
	v, ok := m[name]
	if !ok {
		return absent{}
	}
	return v
}

// value records where two values differ. Objects are compared member by member.
func (c *Comparer) value(pointer string, a, b any) {
	ma, isA := a.(map[string]any)
	mb, isB := b.(map[string]any)
	if isA && isB {
		for _, name := range slices.Sorted(maps.Keys(ma)) {
			c.member(pointer, name, ma, mb)
		}
		for _, name := range slices.Sorted(maps.Keys(mb)) {
			if _, both := ma[name]; !both {
				c.member(pointer, name, ma, mb)
			}
		}
		return
	}
	_, noA := a.(absent)
	_, noB := b.(absent)
	if noA == noB && (noA || c.a.canonical(a) == c.b.canonical(b)) {
		return
	}
	c.report.StateDiff[pointer] = ValueDiff{A: render(a), B: render(b)}
}

func (c *Comparer) member(pointer, name string, a, b map[string]any) {
	if strings.HasPrefix(pointer, "/nodeStates/") && strings.Count(pointer, "/") == 2 && name == "since" {
		return // a time
	}
	c.value(pointer+"/"+jsonpointer.Escape(name), member(a, name), member(b, name))
}

func render(v any) json.RawMessage {
	if _, none := v.(absent); none {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil || len(b) > maxValueBytes {
		return fmt.Appendf(nil, `{"omittedBytes":%d}`, len(b))
	}
	return b
}
