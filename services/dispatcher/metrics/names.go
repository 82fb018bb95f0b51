package metrics

import (
	"strings"
	"sync"
)

// other stands for every value that an attribute has no room for.
const other = "other"

// maxName is the longest value, in bytes.
const maxName = 128

// labelValues are the values that an attribute may have: the first that come, as many as there
// is room for. What tenants choose would otherwise make series without an end (OpenWOP
// host contract §10.3).
type labelValues struct {
	room  int
	mu    sync.RWMutex // guards known
	known map[string]string
}

func newLabelValues(room int) *labelValues {
	return &labelValues{room: room, known: make(map[string]string, room)}
}

// value is the value to use for a name.
func (n *labelValues) value(name string) string {
	n.mu.RLock()
	value, ok := n.known[name]
	full := len(n.known) >= n.room
	n.mu.RUnlock()
	switch {
	case ok:
		return value
	case full || name == "" || len(name) > maxName:
		return other
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if value, ok = n.known[name]; ok {
		return value
	}
	if len(n.known) >= n.room {
		return other
	}
	value = strings.ToValidUTF8(name, "\uFFFD") // any other would end the process
	n.known[strings.Clone(name)] = value
	return value
}
