package channel

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// Channel is a declaration prepared for writes. It is immutable.
type Channel struct {
	Name string
	// Implicit: only the node that writes to it declares it.
	Implicit bool
	Access   Access
	decl     wire.Channel
	schema   *schema.Schema
}

// Declare prepares a channel; jsonSchema is the schema of its values, nil for none. The error is a
// *schema.Error.
func Declare(name string, decl wire.Channel, jsonSchema json.RawMessage, access Access) (*Channel, error) {
	c := &Channel{Name: name, Access: access, decl: decl}
	if len(jsonSchema) == 0 {
		return c, nil
	}
	compiled, err := schema.Compile(name, jsonSchema)
	if err != nil {
		return nil, err
	}
	c.schema = compiled
	if len(decl.CompatibleWith) > 0 {
		c.decl.Schema = jsonSchema
	}
	return c, nil
}

// Pinned returns the part of the channel that a run's record holds.
func (c *Channel) Pinned() wire.Channel { return c.decl }

// Reducer returns the reducer in effect.
func (c *Channel) Reducer() string { return c.decl.Reducer }

// Written returns the payload of a write.
func (c *Channel) Written(nodeID string, value json.RawMessage, at time.Time) wire.ChannelWritten {
	w := wire.ChannelWritten{Channel: c.Name, Value: value, Reducer: c.decl.Reducer, NodeID: nodeID, WrittenAt: wire.FormatTime(at)}
	if c.decl.SchemaVersion > 1 {
		w.SchemaVersion = c.decl.SchemaVersion
	}
	return w
}

// Check returns why a value cannot be written to the channel in its state. It names the rule and
// never the value, which may be confidential.
func (c *Channel) Check(s *State, value json.RawMessage, at time.Time) error {
	if err := c.fits(s, value); err != nil {
		return fmt.Errorf("channel %q: %w", c.Name, err)
	}
	if c.schema == nil {
		return nil
	}
	after := func() json.RawMessage { return s.with(value, at.UnixMilli()).bare() }
	if accepts(c.schema, c.decl, value, after) {
		return nil
	}
	first := c.schema.Validate(value)[0]
	return fmt.Errorf("channel %q: the value is not of the channel's schema: %s (at %q, %s)", c.Name, first.Message, first.InstancePath, first.SchemaPath)
}

// fits checks a value against the input of the channel's reducer.
func (c *Channel) fits(s *State, value json.RawMessage) error {
	switch c.decl.Reducer {
	case Counter:
		if _, ok := number(value); !ok {
			return errors.New("reducer counter adds numbers; want a number")
		}
		if _, ok := add(s.number(), value); !ok {
			return errors.New("reducer counter: the sum would be larger than any number of JSON; want a smaller one")
		}
	case Merge:
		return c.fitsMerge(s, value)
	case Votes:
		if voter(value) == "" {
			return errors.New("reducer votes keeps the latest vote of each voter; want an object with voter, a string")
		}
	case Feedback:
		if strictjson.Object(value) == nil {
			return errors.New("reducer feedback gathers objects; want one, such as {author, text, timestamp}")
		}
	case Message:
		return c.fitsMessage(s, value)
	}
	return nil
}

func (c *Channel) fitsMerge(s *State, value json.RawMessage) error {
	if strictjson.Object(value) == nil {
		return errors.New("reducer merge merges objects; want an object")
	}
	if n := c.decl.MaxSize; n > 0 && int64(len(strictjson.Object(s.with(value, 0).Value()))) > n {
		return fmt.Errorf("it may have %d members, and would have more; raise maxSize or write fewer", n)
	}
	return nil
}

func (c *Channel) fitsMessage(s *State, value json.RawMessage) error {
	id := text(value, "messageId")
	if id == "" {
		return errors.New("reducer message needs an object with messageId, a string")
	}
	if n := c.decl.MaxSize; n > 0 && int64(len(s.entries)) >= n && !s.hasMessage(id) {
		return fmt.Errorf("it may hold %d messages, and does; raise maxSize", n)
	}
	return nil
}

// accepts validates a value against a schema. For a list reducer, a schema of type array may
// describe the whole list; then the resulting list is validated, unless the value is itself an
// array.
func accepts(s *schema.Schema, decl wire.Channel, value json.RawMessage, after func() json.RawMessage) bool {
	if len(s.Validate(value)) == 0 {
		return true
	}
	if !Gathers(decl.Reducer) || isArray(value) || !s.OnlyArrays() {
		return false
	}
	return len(s.Validate(after())) == 0
}

func isArray(v json.RawMessage) bool {
	return strings.HasPrefix(strings.TrimLeft(string(v), " \t\r\n"), "[")
}
