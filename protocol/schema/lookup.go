package schema

import (
	"strconv"
	"strings"
)

// lookup resolves a JSON pointer to an object of doc.
func lookup(doc any, pointer string) (map[string]any, bool) {
	if pointer != "" && !strings.HasPrefix(pointer, "/") {
		return nil, false
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, token := range strings.Split(pointer, "/")[1:] {
		switch v := doc.(type) {
		case map[string]any:
			doc = v[unescape.Replace(token)]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			doc = v[i]
		default:
			return nil, false
		}
	}
	object, ok := doc.(map[string]any)
	return object, ok
}
