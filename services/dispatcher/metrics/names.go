package metrics

import (
	"strings"
	"sync"
)

// other replaces all values beyond the limit.
const other = "other"

// maxName is the longest value in bytes.
const maxName = 128

// labelValues limits the values of a label to the first ones that occur. Names chosen by tenants
// would otherwise create unlimited series (OpenWOP host contract §10.3).
type labelValues struct {
	room  int
	mu    sync.RWMutex // guards known
	known map[string]string
}

func newLabelValues(room int) *labelValues {
	return &labelValues{room: room, known: make(map[string]string, room)}
}

// value returns the label value of a name.
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
	value = strings.ToValidUTF8(name, "\uFFFD") // Prometheus panics on invalid UTF-8
	n.known[strings.Clone(name)] = value
	return value
}
