package strictjson

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Set stores a value that Each gave in the text, the number or the JSON that a pointer of the
// common types leads to, as json.Unmarshal does, which stores in what is of any other type. It
// reports whether the value is of that type; if not, nothing is stored that the type cannot hold.
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
