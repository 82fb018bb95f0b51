package wire_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
)

var at = time.Date(2026, 5, 1, 12, 34, 56, 789_654_321, time.FixedZone("plus2", 2*3600))

func TestPlace_IsDeterministic(t *testing.T) {
	t.Parallel()
	d := wire.Draft{Type: wire.EventNodeStarted, NodeID: "a", Payload: json.RawMessage(`{"nodeId":"a"}`)}
	one := d.Place("run_1", 3, at).AppendJSON(nil)
	two := d.Place("run_1", 3, at).AppendJSON(nil)
	require.Equal(t, string(one), string(two))
	require.NotEqual(t, string(one), string(d.Place("run_2", 3, at).AppendJSON(nil)))
}

// Zero values must be on the wire (OpenWOP host contract Appendix C no. 1).
func TestAppendJSON_WritesZeroValuesTheProtocolRequires(t *testing.T) {
	t.Parallel()
	b := wire.Draft{Type: wire.EventRunStarted}.Place("run_1", 0, at).AppendJSON(nil)
	require.JSONEq(t, `{"eventId":"ev_run_1_0","runId":"run_1","sequence":0,"type":"run.started","payload":{},
		"timestamp":"2026-05-01T10:34:56.789Z","schemaVersion":1,"engineVersion":"1"}`, string(b))
}

func TestAppendJSON_OmitsAbsentMembers(t *testing.T) {
	t.Parallel()
	b := string(wire.Draft{Type: wire.EventRunStarted}.Place("r", 0, at).AppendJSON(nil))
	for _, name := range []string{"nodeId", "causationId", "contentTrust"} {
		require.NotContains(t, b, name)
	}
	d := wire.Draft{Type: wire.EventArtifactCreated, NodeID: "n", CausationID: "c", Trust: wire.Untrusted}
	require.Contains(t, string(d.Place("r", 1, at).AppendJSON(nil)), `"causationId":"c","contentTrust":"untrusted"`)
}

func TestAppendJSON_KeepsPayloadsByteForByte(t *testing.T) {
	t.Parallel()
	payload := `{"n":12345678901234567890,"b":1,"a":1.50}`
	b := wire.Draft{Type: wire.EventVariableChanged, Payload: json.RawMessage(payload)}.Place("r", 0, at).AppendJSON(nil)
	require.Contains(t, string(b), payload)
}

func TestAppendString_AgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plain", `quote " and \`, "line\nbreak\ttab\r", "\x00\x1f\x7f", "ümläut 漢字 😀", "\u2028\u2029", "<>&"} {
		var back string
		require.NoError(t, json.Unmarshal(wire.AppendString(nil, s), &back), "%q", s)
		require.Equal(t, s, back)
	}
	require.NotContains(t, string(wire.AppendString(nil, "a\u2028b")), "\u2028", "a line of JSON stays one line")
}

// Logs are chained by these bytes: they must never change.
func TestAppendString_BytesAreStable(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"": `""`, "a": `"a"`, `"\`: `"\"\\"`, "\n\r\t": `"\n\r\t"`, "\x00\b\f\x1f\x7f": `"\u0000\u0008\u000c\u001f\u007f"`,
		"a\u2028b\u2029": `"a\u2028b\u2029"`, "\xffa\xe2\x82": `"\ufffda\ufffd\ufffd"`, "\ufffd": `"` + "\ufffd" + `"`, "<>&/'": `"<>&/'"`, "ä漢😀\u2027": "\"ä漢😀\u2027\"",
	} {
		require.Equal(t, want, string(wire.AppendString(nil, s)), "%q", s)
		require.Equal(t, "x"+want, string(wire.AppendString(append(make([]byte, 0, 64), 'x'), s)), "%q", s)
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("x\"\\\u2028\xff")
	f.Fuzz(func(t *testing.T, s string) {
		var back string
		require.NoError(t, json.Unmarshal(wire.AppendString(nil, s), &back))
		require.Equal(t, string([]rune(s)), back, "each invalid byte becomes U+FFFD")
	})
}

func TestSplitArray_ReturnsTheAppendedBytes(t *testing.T) {
	t.Parallel()
	events := []wire.Event{
		wire.Draft{Type: wire.EventRunStarted, Payload: json.RawMessage(`{"a":"},]\"[{","b":[1,[2]]}`)}.Place("r", 0, at),
		wire.Draft{Type: wire.EventRunCompleted}.Place("r", 1, at),
	}
	parts, err := wire.SplitArray(wire.AppendEvents(nil, events))
	require.NoError(t, err)
	require.Len(t, parts, 2)
	for i, e := range events {
		require.Equal(t, string(e.AppendJSON(nil)), string(parts[i]))
	}
	none, err := wire.SplitArray([]byte(" [ ] "))
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestSplitArray_RejectsOtherValues(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "{}", "[", `["]`, "[{]", "null"} {
		_, err := wire.SplitArray([]byte(body))
		require.ErrorIs(t, err, wire.ErrNotArray, body)
	}
}

// The result equals that of encoding/json, except for members in another case.
func FuzzParseEvents(f *testing.F) {
	for _, body := range []string{
		`[]`, `null`, `[null]`, `[{}]`, `[7]`, `{}`, `[{"eventId":"e","sequence":3,"type":"run.started","payload":{"a":[1]},"other":1}] `,
		`[{"sequence":"3"}]`, `[{"nodeId":"\ud800"}]`, `[{"sequence":1},{"sequence":2,"payload":null}]`, `[{"payload":{"a":1,"a":2},"type":null}]`,
	} {
		f.Add([]byte(body))
	}
	members := []string{
		"eventId", "runId", "sequence", "type", "nodeId", "payload", "timestamp", "causationId", "contentTrust", "schemaVersion", "engineVersion", "sourceTime",
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var docs []map[string]json.RawMessage
		_ = json.Unmarshal(body, &docs)
		for _, doc := range docs {
			for name := range doc {
				if !slices.Contains(members, name) && slices.ContainsFunc(members, func(m string) bool { return strings.EqualFold(m, name) }) {
					return
				}
			}
		}
		var want []wire.Event
		failed := json.Unmarshal(body, &want) != nil
		got, err := wire.ParseEvents(body)
		require.Equal(t, failed, err != nil)
		if !failed {
			require.Equal(t, want, got)
		}
	})
}

func FuzzSplitArray(f *testing.F) {
	f.Add([]byte(`[{"a":1},{"b":"]"}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		parts, err := wire.SplitArray(body)
		var want []json.RawMessage
		if json.Unmarshal(body, &want) != nil || want == nil {
			return // the contract covers valid arrays only
		}
		require.NoError(t, err)
		require.Len(t, parts, len(want))
		for i := range want {
			require.JSONEq(t, string(want[i]), string(parts[i]))
		}
	})
}

func TestTrust_NeverRises(t *testing.T) {
	t.Parallel()
	require.Equal(t, wire.Trusted, wire.Trusted.Meet(""), "absent reads as trusted")
	require.Equal(t, wire.Untrusted, wire.Trusted.Meet(wire.Untrusted))
	require.Equal(t, wire.Untrusted, wire.Untrusted.Meet(wire.Trusted))
}

func TestStatus_TerminalAndWaitingAreDisjoint(t *testing.T) {
	t.Parallel()
	require.Len(t, wire.Statuses(), 10)
	for _, s := range wire.Statuses() {
		require.False(t, s.Terminal() && s.Waiting(), s)
	}
}

func TestParseRunRecord_NamesMissingMembers(t *testing.T) {
	t.Parallel()
	_, err := wire.ParseRunRecord([]byte(`{"runId":"r"}`))
	require.ErrorContains(t, err, "owner.tenant")
	_, err = wire.ParseRunRecord([]byte(`{`))
	require.Error(t, err)
}

func BenchmarkParseEvents(b *testing.B) {
	var events []wire.Event
	for i := range 4 {
		events = append(events, wire.Draft{
			Type: wire.EventNodeCompleted, NodeID: "a", Payload: json.RawMessage(`{"nodeId":"a","outputs":{"output":"` + strings.Repeat("x", 500) + `"}}`),
		}.Place("run_1", i, at))
	}
	body := wire.AppendEvents(nil, events)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.ParseEvents(body); err != nil {
			b.Fatal(err)
		}
	}
}

// Every member of an event is read into its field.
func TestParseEvents_ReadsAllMembers(t *testing.T) {
	t.Parallel()
	e := wire.Event{
		EventID: "e", RunID: "r", Sequence: 3, Type: "t", NodeID: "n", Payload: json.RawMessage(`{"a":1}`), Timestamp: "2026-05-01T10:34:56.789Z", CausationID: "c",
		ContentTrust: wire.Untrusted, SchemaVersion: 2, EngineVersion: "4", SourceTime: "2026-05-01T10:34:56.788Z",
	}
	all := reflect.ValueOf(e)
	for i := range all.NumField() {
		require.False(t, all.Field(i).IsZero(), "%s is not tested here", all.Type().Field(i).Name)
	}
	body, err := json.Marshal([]wire.Event{e, {}})
	require.NoError(t, err)
	got, err := wire.ParseEvents(body)
	require.NoError(t, err)
	require.Equal(t, []wire.Event{e, {Payload: json.RawMessage("null")}}, got)
}

func BenchmarkAppendEvents(b *testing.B) {
	e := wire.Draft{Type: wire.EventNodeCompleted, NodeID: "node", Payload: json.RawMessage(`{"nodeId":"node"}`)}.Place("run_01hzy", 3, at)
	events := []wire.Event{e, e, e, e}
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buf = wire.AppendEvents(buf[:0], events)
	}
}
