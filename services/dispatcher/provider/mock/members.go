package mock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// members reads a JSON object member by member and collects errors with their paths. Names are
// matched exactly and must be unique, unlike in encoding/json.
type members struct {
	path   string
	unread map[string]json.RawMessage // members not read yet
	errs   []error
}

// parseMembers parses raw as an object; empty input is an empty object.
func parseMembers(path string, raw json.RawMessage) (*members, error) {
	m := &members{path: path, unread: map[string]json.RawMessage{}}
	if len(bytes.TrimSpace(raw)) == 0 {
		return m, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("%s: want a JSON object", path)
	}
	for d.More() {
		if err := m.readMember(d); err != nil {
			return nil, err
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("%s: the object does not end", path)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: want one JSON object and nothing after it", path)
	}
	return m, nil
}

func (m *members) readMember(d *json.Decoder) error {
	t, err := d.Token()
	if err != nil {
		return fmt.Errorf("%s: not a JSON object", m.path)
	}
	name, _ := t.(string) // the decoder ensures a string
	var v json.RawMessage
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("%s.%s: not a JSON value", m.path, name)
	}
	if _, twice := m.unread[name]; twice {
		return fmt.Errorf("%s.%s: given twice", m.path, name)
	}
	m.unread[name] = v
	return nil
}

// err returns all errors, including unknown members.
func (m *members) err() error {
	for _, name := range slices.Sorted(maps.Keys(m.unread)) {
		m.fail(name, "unknown member; remove it")
	}
	return errors.Join(m.errs...)
}

// addErrors adds the errors of a nested object.
func (m *members) addErrors(o *members) {
	if err := o.err(); err != nil {
		m.errs = append(m.errs, err)
	}
}

func (m *members) fail(name, format string, args ...any) {
	m.errs = append(m.errs, fmt.Errorf("%s.%s: %s", m.path, name, fmt.Sprintf(format, args...)))
}

// decode decodes a member; ok is false if it is absent or invalid. null is invalid.
func (m *members) decode(name, want string, v any) (ok bool) {
	raw, ok := m.unread[name]
	if !ok {
		return false
	}
	delete(m.unread, name)
	if string(raw) == "null" || json.Unmarshal(raw, v) != nil {
		m.fail(name, "want %s", want)
		return false
	}
	return true
}

func (m *members) text(name, def string) string {
	v := def
	if m.decode(name, "a string", &v) && v == "" {
		m.fail(name, "want a string that is not empty")
	}
	return v
}

// required reads a required string.
func (m *members) required(name string) string {
	if _, ok := m.unread[name]; !ok {
		m.fail(name, "required")
		return ""
	}
	return m.text(name, "")
}

// texts reads an array of strings.
func (m *members) texts(name string, def []string) []string {
	var v []*string
	if !m.decode(name, "an array of strings", &v) {
		return def
	}
	list := make([]string, len(v))
	for i, s := range v {
		if s == nil {
			m.fail(fmt.Sprintf("%s[%d]", name, i), "want a string")
			continue
		}
		list[i] = *s
	}
	return list
}

// oneOf reads one of the given words; the first is the default.
func (m *members) oneOf(name string, words ...string) string {
	v := m.text(name, words[0])
	if !slices.Contains(words, v) {
		m.fail(name, "%q; want one of %s", v, strings.Join(words, ", "))
	}
	return v
}

func (m *members) integer(name string, def, low, high int) int {
	v := def
	if m.decode(name, "a whole number", &v) && (v < low || v > high) {
		m.fail(name, "%d; want %d to %d", v, low, high)
	}
	return v
}

func (m *members) millis(name string) time.Duration {
	return time.Duration(m.integer(name, 0, 0, maxDelayMs)) * time.Millisecond
}

func (m *members) boolean(name string) bool {
	var v bool
	m.decode(name, "true or false", &v)
	return v
}

func (m *members) object(name string) (*members, bool) {
	raw, ok := m.unread[name]
	if !ok {
		return nil, false
	}
	delete(m.unread, name)
	o, err := parseMembers(m.path+"."+name, raw)
	if err != nil {
		m.errs = append(m.errs, err)
		return nil, false
	}
	return o, true
}

// objects reads a required non-empty array of objects.
func (m *members) objects(name string) []*members {
	var raws []json.RawMessage
	if _, ok := m.unread[name]; !ok {
		m.fail(name, "required")
		return nil
	}
	if m.decode(name, "an array of objects", &raws) && len(raws) == 0 {
		m.fail(name, "want at least one")
	}
	var list []*members
	for i, raw := range raws {
		o, err := parseMembers(fmt.Sprintf("%s.%s[%d]", m.path, name, i), raw)
		if err != nil {
			m.errs = append(m.errs, err)
			continue
		}
		list = append(list, o)
	}
	return list
}

// jsonText reads JSON text in a string, or renders any other value.
func (m *members) jsonText(name string) string {
	raw, ok := m.unread[name]
	if !ok {
		return "{}"
	}
	delete(m.unread, name)
	var s string
	if json.Unmarshal(raw, &s) == nil && string(raw) != "null" {
		return s
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil { // parseMembers accepted it
		m.fail(name, "not a JSON value")
	}
	return compact.String()
}
