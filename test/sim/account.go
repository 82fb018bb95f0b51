package sim

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// Account is the content of a run's log, without what may differ after a crash:
//
// - times and durations;
// - attempts whose executor died after showing part of the effect. Each is followed by a
// node.retried that says so, and the next attempt starts with new envelope ids;
// - calls in flight that were sent again within their attempt, which log.appended records;
// - the usage of a model call repeated with the same invocation id, after its usage was recorded
// and before its answer was;
// - the position in the source where a fork starts, which is later after such events.
type Account struct {
	Run    string
	Events []string
	// Snapshot is the state that those events fold to.
	Snapshot string
	// Lost is the number of attempts left out.
	Lost int
}

// instants matches timestamps in the log.
var instants = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"|"_ts":\d+`)

// observed matches the elapsed time of a run that timed out.
var observed = regexp.MustCompile(`("kind":"run-duration".*"observed":)\d+`)

// began matches the source position of a fork in its snapshot.
var began = regexp.MustCompile(`("fork":\{"sourceRunId":"[^"]*","mode":"branch","fromSeq":)\d+`)

func timeless(doc []byte) string {
	doc = began.ReplaceAll(instants.ReplaceAll(doc, []byte(`"(time)"`)), []byte("$1(place)"))
	return observed.ReplaceAllString(string(doc), "$1(time)")
}

// accounts returns the accounts of all runs by id. All ids derive from the first run's id,
// including those of children, questions and envelopes, so all must be equal.
func (w *World) accounts() []Account {
	var out []Account
	for _, id := range w.runIDs() {
		a := AccountOf(w.runs[id].record, w.runs[id].events)
		if w.scenario.Story.Races {
			slices.SortStableFunc(a.Events, func(x, y string) int { return strings.Compare(nodeOf(x), nodeOf(y)) })
		}
		out = append(out, a)
	}
	return out
}

// AccountOf returns the account of a log.
func AccountOf(rec *wire.RunRecord, log []wire.Event) Account {
	events, lost := whole(log)
	out, st := Account{Run: rec.RunID, Lost: lost}, runstate.New(rec)
	placed := map[string]int{}
	for i, e := range events {
		placed[strconv.Itoa(e.Sequence)] = i
		e.Sequence, e.Payload = i, answered(e.Payload, placed)
		e.EventID = fmt.Sprintf("ev_%s_%d", rec.RunID, i)
		st.Apply(e)
		out.Events = append(out.Events, fmt.Sprintf("%s@%s %s cause=%s trust=%s", e.Type, e.NodeID, timeless(e.Payload), e.CausationID, e.ContentTrust))
	}
	out.Snapshot = timeless(st.SnapshotJSON())
	return out
}

// parts matches the sequences of the events that form an answer with an envelope.
var parts = regexp.MustCompile(`"with":\[[\d,]+\]`)

// answered replaces these sequences by the positions in the account.
func answered(payload []byte, placed map[string]int) []byte {
	return parts.ReplaceAllFunc(payload, func(b []byte) []byte {
		return numbers.ReplaceAllFunc(b, func(n []byte) []byte { return strconv.AppendInt(nil, int64(placed[string(n)]), 10) })
	})
}

var numbers = regexp.MustCompile(`\d+`)

// nodeOf returns the node of an account line.
func nodeOf(line string) string {
	head, _, _ := strings.Cut(line, " ")
	_, node, _ := strings.Cut(head, "@")
	return node
}

// whole returns the log without the attempts that ended with their executor.
func whole(log []wire.Event) (out []wire.Event, lost int) {
	shift := map[string]int{}
	for i := 0; i < len(log); i++ {
		e := log[i]
		if e.Type == wire.EventNodeRetried && startsAgain(e) {
			lost++
			shift[e.NodeID]++
			out = cutShort(out, e.NodeID)
			i++ // skip the node's start, which follows in the same frame
			continue
		}
		if n := shift[e.NodeID]; n > 0 && slices.Contains(counted, e.Type) {
			e.Payload = earlier(e.Payload, n)
		}
		if e.Type == wire.EventLogAppended && strings.Contains(string(e.Payload), `"reason":"`+runstate.ExecutorLost+`"`) {
			continue // a call in flight was repeated within its attempt
		}
		if e.Type == wire.EventProviderUsage && repeatsUsage(out, e) {
			continue
		}
		out = append(out, e)
	}
	return out, lost
}

// startsAgain reports whether an attempt follows that is none of the node's retries.
func startsAgain(e wire.Event) bool {
	return strings.Contains(string(e.Payload), `"reason":"`+runstate.ExecutorLost+`"`) ||
		strings.Contains(string(e.Payload), `"reason":"`+runstate.Branched+`"`)
}

// counted lists the events that carry an attempt number.
var counted = []wire.EventType{wire.EventNodeStarted, wire.EventNodeRetried, wire.EventNodeFailed}

// cutShort removes the events of a node's last attempt since it started or resumed. The next
// attempt starts there.
func cutShort(log []wire.Event, node string) []wire.Event {
	for i := len(log) - 1; i >= 0; i-- {
		if e := log[i]; e.NodeID == node && (e.Type == wire.EventNodeStarted || e.Type == wire.EventNodeResumed) {
			rest := slices.DeleteFunc(slices.Clone(log[i+1:]), func(e wire.Event) bool { return e.NodeID == node })
			return append(log[:i+1], rest...)
		}
	}
	return log
}

// repeatsUsage reports whether a node repeats the same usage event with nothing in between.
func repeatsUsage(log []wire.Event, e wire.Event) bool {
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].NodeID == e.NodeID {
			return log[i].Type == e.Type && string(log[i].Payload) == string(e.Payload)
		}
	}
	return false
}

// earlier lowers the attempt number by n.
func earlier(payload json.RawMessage, n int) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(payload, &m) != nil {
		return payload
	}
	for _, name := range []string{"attempt", "attempts"} {
		var k int
		if m[name] == nil || json.Unmarshal(m[name], &k) != nil {
			continue
		}
		payload = json.RawMessage(strings.Replace(string(payload), fmt.Sprintf("%q:%d", name, k), fmt.Sprintf("%q:%d", name, k-n), 1))
	}
	return payload
}

// Differ returns the first difference between two accounts of the same story, empty if there is
// none.
func Differ(want, got []Account) string {
	if len(want) != len(got) {
		return fmt.Sprintf("got %d runs, want %d", len(got), len(want))
	}
	for i, a := range want {
		b := got[i]
		if a.Lost+b.Lost > 0 {
			a, b = a.Anonymous(), b.Anonymous()
		}
		if a.Run != b.Run {
			return fmt.Sprintf("got run %s, want %s", b.Run, a.Run)
		}
		for k := range max(len(a.Events), len(b.Events)) {
			if x, y := at(a.Events, k), at(b.Events, k); x != y {
				return fmt.Sprintf("run %s, event %d\nwant %s\ngot  %s", a.Run, k, x, y)
			}
		}
		if a.Snapshot != b.Snapshot {
			return fmt.Sprintf("run %s folds to\n%s\nwant\n%s", a.Run, b.Snapshot, a.Snapshot)
		}
	}
	return ""
}

// ids matches ids derived from a run's id. Ids of envelopes also derive from an attempt's number.
var ids = regexp.MustCompile(`env_[0-9a-f]{24}|int_[0-9a-f]{24,32}|run_[0-9a-z]{26}|"[\w-]{43}"|cause=[^ :]+:[^ :]+:\d+(\.\d+)?(q\d+)?:`)

// Anonymous replaces each id by its order of appearance.
func (a Account) Anonymous() Account {
	names := map[string]string{}
	name := func(id string) string {
		if names[id] == "" {
			names[id] = fmt.Sprintf("(id %d)", len(names)+1)
		}
		return names[id]
	}
	events := make([]string, len(a.Events))
	for i, e := range a.Events {
		events[i] = ids.ReplaceAllStringFunc(e, name)
	}
	a.Run, a.Events, a.Snapshot = ids.ReplaceAllStringFunc(a.Run, name), events, ids.ReplaceAllStringFunc(a.Snapshot, name)
	return a
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}
