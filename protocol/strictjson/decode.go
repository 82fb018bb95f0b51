package strictjson

import (
	"bytes"
	"encoding/json"
)

// Decode checks b as Check does and stores it in the value v points to. It is stricter than
// encoding/json. Every error is an *Error with the JSON pointer of the offending member:
//
//   - an object may have only the members of its struct, in exact spelling
//   - null is allowed only for pointers, interfaces and raw JSON
//   - a number for an integer is written without fraction and exponent
//
// A type with its own UnmarshalJSON or UnmarshalText decides for itself; the path of an *Error it
// returns is relative to its member. Numbers in interfaces become json.Number. On error v is
// unchanged.
func Decode(b []byte, l Limits, v any) error {
	if err := check(b, l.withDefaults()); err != nil {
		return err
	}
	if err := conform(b, v); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		// After conform, only an unusable target can fail, such as one that is not a pointer.
		return &Error{Rule: RuleType, Reason: "the document does not fit its target: " + err.Error()}
	}
	return nil
}

// DecodeAll is Decode for files that people write: it finds all members that do not fit, and stores
// those that do. Members that do not fit keep the value that v has. A document that Check refuses has
// one error, and nothing of it is stored.
func DecodeAll(b []byte, l Limits, v any) []*Error {
	if err := check(b, l.withDefaults()); err != nil {
		return []*Error{err}
	}
	found := nonconforming(b, v)
	if err := json.Unmarshal(b, v); err != nil && len(found) == 0 {
		return []*Error{{Rule: RuleType, Reason: "the document does not fit its target: " + err.Error()}}
	}
	return found
}
