package runview

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// minted matches ids that the host makes anew in each run.
var minted = regexp.MustCompile(`\b(?:run|env|int|evt|art|chk)_[0-9a-z]{16,40}\b`)

// measured are members at the top of a payload that hold what the host measures or
// makes; what workflows and models write lies deeper.
var measured = map[string]bool{
	"runId": true, "durationMs": true, "latencyMs": true, "elapsedMs": true, "traceparent": true, "traceId": true, "spanId": true, "timestamp": true,
}

// namer gives the ids of one run names that do not depend on the run: the order in
// which they first appear. Two runs are the same if they are under these names.
type namer struct {
	// runIDs are the run's own and, of a fork, those of the runs that it comes from: what
	// they have recorded names them.
	runIDs []string
	names  map[string]string
}

func newNamer(runID string) namer {
	return namer{runIDs: []string{runID}, names: map[string]string{}}
}

// text gives a text with the names in place of the ids.
func (n namer) text(s string) string {
	if !strings.Contains(s, "_") {
		return s
	}
	for _, id := range n.runIDs {
		s = strings.ReplaceAll(s, id, "run")
	}
	return minted.ReplaceAllStringFunc(s, func(id string) string {
		if n.names[id] == "" {
			kind, _, _ := strings.Cut(id, "_")
			n.names[id] = kind + "#" + strconv.Itoa(len(n.names)+1)
		}
		return n.names[id]
	})
}

// payload is the canonical form of a payload without what does not count.
func (n namer) payload(doc json.RawMessage) string {
	v, err := decode(doc)
	if err != nil {
		return n.text(string(doc))
	}
	if m, ok := v.(map[string]any); ok {
		for name, value := range m {
			if measured[name] || isTime(name, value) {
				delete(m, name)
			}
		}
	}
	return n.canonical(v)
}

// canonical writes a value in one way: members in order, numbers as they are written.
func (n namer) canonical(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return n.text(string(b))
}

// isTime knows a time that the host notes, such as expiresAt.
func isTime(name string, value any) bool {
	s, ok := value.(string)
	if !ok || !strings.HasSuffix(name, "At") {
		return false
	}
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

func decode(doc []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
