package strictjson

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Set stores a value from Each in target, as json.Unmarshal does; pointers to common types take a
// fast path. It reports whether the value has the target's type. If not, the target holds nothing
// invalid.
func Set(value []byte, target any) bool {
	switch t := target.(type) {
	case *json.RawMessage:
		*t = bytes.Clone(value)
		return true
	case *string:
		text, ok := String(value)
		if ok {
			*t = text
		}
		return ok || string(value) == "null"
	case *int:
		n, err := strconv.Atoi(string(value))
		if err == nil {
			*t = n
		}
		return err == nil || string(value) == "null"
	case *int64:
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err == nil {
			*t = n
		}
		return err == nil || string(value) == "null"
	default:
		return json.Unmarshal(value, target) == nil
	}
}
