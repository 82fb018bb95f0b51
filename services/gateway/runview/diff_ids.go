package runview

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// generatedID matches ids that the host generates for each run.
var generatedID = regexp.MustCompile(`\b(?:run|env|int|evt|art|chk)_[0-9a-z]{16,40}\b`)

// measured are top-level payload members that the host measures or generates. Content of
// workflows and models is nested deeper.
var measured = map[string]bool{
	"runId":       true,
	"durationMs":  true,
	"latencyMs":   true,
	"elapsedMs":   true,
	"traceparent": true,
	"traceId":     true,
	"spanId":      true,
	"timestamp":   true,
}

// namer replaces the ids of one run: by their order in the event in which they appear first, and by
// that event in later ones. Two runs are equal if they are equal after the replacement. An id has no
// number over the run, so that one more id does not rename the later ones.
type namer struct {
	// runIDs are the run's id and those of its ancestors, which copied events contain.
	runIDs []string
	names  map[string]firstPlace
	place  string
	// here counts the ids that appeared first at the place.
	here int
}

// firstPlace is the event in which an id appears first, and its order there.
type firstPlace struct {
	place string
	order int
}

func newNamer(runID string) namer {
	return namer{runIDs: []string{runID}, names: map[string]firstPlace{}}
}

// at sets the place of the ids that follow.
func (n *namer) at(place string) { n.place, n.here = place, 0 }

// text replaces the ids in a text.
func (n *namer) text(s string) string {
	if !strings.Contains(s, "_") {
		return s
	}
	for _, id := range n.runIDs {
		s = strings.ReplaceAll(s, id, "run")
	}
	return generatedID.ReplaceAllStringFunc(s, func(id string) string {
		first, known := n.names[id]
		if !known {
			n.here++
			first = firstPlace{n.place, n.here}
			n.names[id] = first
		}
		kind, _, _ := strings.Cut(id, "_")
		place := first.place
		if place == n.place {
			place = "here"
		}
		return kind + "@" + place + "#" + strconv.Itoa(first.order)
	})
}

// payload returns the canonical form of a payload without members that are not compared.
func (n *namer) payload(doc json.RawMessage) string {
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

// canonical encodes a value in one way: sorted members, numbers as written.
func (n *namer) canonical(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return n.text(string(b))
}

// isTime reports a time that the host records, such as expiresAt.
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
