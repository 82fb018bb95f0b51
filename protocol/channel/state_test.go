package channel_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/channel"
	"waybill.dev/waybill/protocol/wire"
)

var at = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// after returns a time in milliseconds after the start of the run.
func after(ms int64) string { return wire.FormatTime(at.Add(time.Duration(ms) * time.Millisecond)) }

// write is a value and its time.
type write struct {
	value string
	ms    int64
}

// fold writes values to a channel, one per second.
func fold(decl wire.Channel, values ...string) *channel.State {
	s := channel.New(decl, after(0))
	for i, v := range values {
		s.Apply("e", wire.ChannelWritten{Value: json.RawMessage(v), Reducer: decl.Reducer, WrittenAt: after(int64(i) * 1000)})
	}
	return s
}

// OpenWOP host contract §5.9: the result of each reducer.
func TestReducers_FoldWrites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		decl   wire.Channel
		values []string
		want   string
	}{
		"replace keeps the last":                        {wire.Channel{Reducer: "replace"}, []string{`1`, `{"a":2}`}, `{"a":2}`},
		"append makes a list":                           {wire.Channel{Reducer: "append"}, []string{`1`, `"a"`, `[2]`, `null`}, `[1,"a",[2],null]`},
		"append drops the oldest":                       {wire.Channel{Reducer: "append", MaxSize: 2}, []string{`1`, `2`, `3`}, `[2,3]`},
		"append starts with its default":                {wire.Channel{Reducer: "append", Default: json.RawMessage(`[0]`)}, []string{`1`}, `[0,1]`},
		"merge overwrites members, shallowly":           {wire.Channel{Reducer: "merge"}, []string{`{"a":{"x":1},"b":1}`, `{"a":{"y":2}}`}, `{"a":{"y":2},"b":1}`},
		"merge matches members by exact name":           {wire.Channel{Reducer: "merge"}, []string{`{"a":1}`, `{"A":2}`}, `{"a":1,"A":2}`},
		"counter sums":                                  {wire.Channel{Reducer: "counter"}, []string{`5`, `-7`}, `-2`},
		"counter is exact within the range of integers": {wire.Channel{Reducer: "counter"}, []string{`9007199254740993`, `1`}, `9007199254740994`},
		"counter of fractions":                          {wire.Channel{Reducer: "counter", Default: json.RawMessage(`10`)}, []string{`0.5`}, `10.5`},
		"counter beyond what integers hold":             {wire.Channel{Reducer: "counter"}, []string{`9223372036854775807`, `1`}, `9223372036854775808`},
		"votes keep the latest of each":                 {wire.Channel{Reducer: "votes"}, []string{`{"voter":"a","vote":1}`, `{"voter":"b","vote":1}`, `{"voter":"a","vote":0}`}, `[{"voter":"b","vote":1},{"voter":"a","vote":0}]`},
		"votes drop the oldest":                         {wire.Channel{Reducer: "votes", MaxSize: 1}, []string{`{"voter":"a"}`, `{"voter":"b"}`}, `[{"voter":"b"}]`},
		"feedback is bounded":                           {wire.Channel{Reducer: "feedback", MaxSize: 1}, []string{`{"text":"x"}`, `{"text":"y"}`}, `[{"text":"y"}]`},
		"the first message of an id wins":               {wire.Channel{Reducer: "message"}, []string{`{"messageId":"1","content":"a"}`, `{"messageId":"2"}`, `{"messageId":"1","content":"b"}`}, `[{"messageId":"1","content":"a"},{"messageId":"2"}]`},
		"an unknown reducer replaces":                   {wire.Channel{Reducer: "vendor.acme.dedupe"}, []string{`1`, `2`}, `2`},
		"invalid writes change nothing":                 {wire.Channel{Reducer: "counter"}, []string{`1`, `"2"`, `{}`, `1e999`}, `1`},
		"a vote without voter changes nothing":          {wire.Channel{Reducer: "votes"}, []string{`{"vote":1}`, `7`}, `[]`},
		"a list without writes is empty":                {wire.Channel{Reducer: "append"}, nil, `[]`},
		"a counter without writes is zero":              {wire.Channel{Reducer: "counter"}, nil, `0`},
		"an object without writes is empty":             {wire.Channel{Reducer: "merge"}, nil, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.JSONEq(t, c.want, string(fold(c.decl, c.values...).Value()))
		})
	}
	require.Nil(t, fold(wire.Channel{Reducer: "replace"}).Value())
}

// OpenWOP host contract §5.9: the reducer of the event applies, whatever is declared when the log
// is
// read.
func TestApply_UsesTheReducerOfTheEvent(t *testing.T) {
	t.Parallel()
	s := channel.New(wire.Channel{Reducer: "replace"}, after(0))
	for i, w := range []wire.ChannelWritten{{Value: json.RawMessage(`1`), Reducer: "append"}, {Value: json.RawMessage(`2`), Reducer: "append"}} {
		w.WrittenAt = after(int64(i))
		s.Apply("e", w)
	}
	require.JSONEq(t, `[1,2]`, string(s.Value()))
	s.Apply("e", wire.ChannelWritten{Value: json.RawMessage(`[9]`), Reducer: "replace"})
	s.Apply("e", wire.ChannelWritten{Value: json.RawMessage(`3`), Reducer: "append"})
	require.JSONEq(t, `[9,3]`, string(s.Value()), "an array becomes the elements of the list")
}

// OpenWOP host contract §5.9: entries age by the time of their events.
func TestTTL_DropsOldEntriesAtTheNextWriteOrRead(t *testing.T) {
	t.Parallel()
	s := channel.New(wire.Channel{Reducer: "append", TTLMillis: 200}, after(0))
	for _, w := range []write{{`"a"`, 0}, {`"b"`, 100}, {`"c"`, 200}} {
		s.Apply("e", wire.ChannelWritten{Value: json.RawMessage(w.value), Reducer: "append", WrittenAt: after(w.ms)})
	}
	ts := func(ms int64) string { return strconv.FormatInt(at.UnixMilli()+ms, 10) }
	require.JSONEq(t, `[{"value":"a","_ts":`+ts(0)+`},{"value":"b","_ts":`+ts(100)+`},{"value":"c","_ts":`+ts(200)+`}]`, string(s.Value()), "200 ms is within the limit")
	s.Expire(after(301))
	require.JSONEq(t, `[{"value":"c","_ts":`+ts(200)+`}]`, string(s.Value()))
	s.Apply("e", wire.ChannelWritten{Value: json.RawMessage(`"d"`), Reducer: "append", WrittenAt: after(500)})
	require.JSONEq(t, `[{"value":"d","_ts":`+ts(500)+`}]`, string(s.Value()))
}

func TestTTL_AppliesToListsOnly(t *testing.T) {
	t.Parallel()
	for reducer, value := range map[string]string{"replace": `1`, "counter": `1`, "merge": `{"a":1}`, "message": `{"messageId":"1"}`} {
		s := fold(wire.Channel{Reducer: reducer, TTLMillis: 1}, value)
		before := s.Value()
		s.Expire(after(1 << 30))
		require.Equal(t, before, s.Value(), reducer)
	}
}

// A default has the age of the run.
func TestTTL_AgesTheDefault(t *testing.T) {
	t.Parallel()
	s := channel.New(wire.Channel{Reducer: "append", TTLMillis: 10, Default: json.RawMessage(`[1]`)}, after(0))
	s.Expire(after(10))
	require.Contains(t, string(s.Value()), `{"value":1,`)
	s.Expire(after(11))
	require.JSONEq(t, `[]`, string(s.Value()))
}

// OpenWOP host contract §5.9: an older write counts only if it is listed and valid.
func TestVersions_BreakAChannelThatNoLongerReadsThem(t *testing.T) {
	t.Parallel()
	decl := wire.Channel{Reducer: "append", SchemaVersion: 3, CompatibleWith: []int64{2}, Schema: json.RawMessage(`{"type":"string"}`)}
	for name, c := range map[string]struct {
		version int64
		value   string
		broken  bool
	}{
		"today's":                 {3, `"x"`, false},
		"newer, of a later host":  {4, `{}`, false},
		"listed and valid":        {2, `"x"`, false},
		"listed and no longer so": {2, `1`, true},
		"not listed":              {1, `"x"`, true},
		"without version is one":  {0, `"x"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := channel.New(decl, after(0))
			s.Apply("ev_1", wire.ChannelWritten{Value: json.RawMessage(c.value), Reducer: "append", SchemaVersion: c.version, WrittenAt: after(0)})
			if !c.broken {
				require.Nil(t, s.Broken())
				require.JSONEq(t, "["+c.value+"]", string(s.Value()))
				return
			}
			require.Equal(t, &channel.Break{Version: max(c.version, 1), Current: 3, EventID: "ev_1"}, s.Broken())
			s.Apply("ev_2", wire.ChannelWritten{Value: json.RawMessage(`"y"`), Reducer: "append", SchemaVersion: 3, WrittenAt: after(0)})
			require.JSONEq(t, `[]`, string(s.Value()), "nothing is folded after the break")
		})
	}
}

// values draws a value for the reducer, valid or not.
func values(reducer string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		n := rapid.IntRange(-3, 3).Draw(t, "n")
		switch reducer {
		case "votes":
			return fmt.Sprintf(`{"voter":"v%d","vote":%d}`, n, rapid.IntRange(0, 9).Draw(t, "vote"))
		case "message":
			return fmt.Sprintf(`{"messageId":"m%d","content":%d}`, n, rapid.IntRange(0, 9).Draw(t, "content"))
		case "merge":
			return fmt.Sprintf(`{"k%d":%d}`, n, n)
		case "feedback":
			return fmt.Sprintf(`{"text":"%d"}`, n)
		default:
			return rapid.SampledFrom([]string{strconv.Itoa(n), `"x"`, `null`, `{}`, `[1]`}).Draw(t, "any")
		}
	})
}

var reducers = []string{"replace", "append", "merge", "counter", "votes", "feedback", "message", "vendor.a.b"}

// drawn returns a log of writes in the order of time.
func drawn(t *rapid.T, reducer string) []wire.ChannelWritten {
	var ms int64
	var out []wire.ChannelWritten
	for range rapid.IntRange(0, 12).Draw(t, "writes") {
		ms += rapid.Int64Range(0, 150).Draw(t, "wait")
		out = append(out, wire.ChannelWritten{Value: json.RawMessage(values(reducer).Draw(t, "value")), Reducer: reducer, WrittenAt: after(ms)})
	}
	return out
}

func declared(t *rapid.T, reducer string) wire.Channel {
	return wire.Channel{
		Reducer: reducer, MaxSize: rapid.Int64Range(0, 4).Draw(t, "maxSize"), TTLMillis: rapid.SampledFrom([]int64{0, 100, 1000}).Draw(t, "ttl"),
	}
}

func folded(decl wire.Channel, log []wire.ChannelWritten) *channel.State {
	s := channel.New(decl, after(0))
	for _, w := range log {
		s.Apply("e", w)
	}
	return s
}

// A log folds to the same state every time, also when resumed at any point.
func TestFold_IsDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		reducer := rapid.SampledFrom(reducers).Draw(t, "reducer")
		decl, log := declared(t, reducer), drawn(t, reducer)
		want := string(folded(decl, log).Value())
		require.Equal(t, want, string(folded(decl, log).Value()))
		cut := rapid.IntRange(0, len(log)).Draw(t, "cut")
		s := folded(decl, log[:cut])
		for _, w := range log[cut:] {
			before := string(s.Value())
			next := s.With(w)
			require.Equal(t, before, string(s.Value()), "With does not change its receiver")
			s = next
		}
		require.Equal(t, want, string(s.Value()))
		require.True(t, s.Value() == nil || json.Valid(s.Value()))
	})
}

// A list holds the latest values in the order of their sequence, none too old at the last write.
func TestAppend_HoldsTheTailOfTheLogInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		decl, log := declared(t, "append"), drawn(t, "append")
		var want []json.RawMessage
		for _, w := range log {
			last, err := time.Parse(time.RFC3339, log[len(log)-1].WrittenAt)
			require.NoError(t, err)
			written, err := time.Parse(time.RFC3339, w.WrittenAt)
			require.NoError(t, err)
			if decl.TTLMillis == 0 || !written.Before(last.Add(-time.Duration(decl.TTLMillis)*time.Millisecond)) {
				want = append(want, w.Value)
			}
		}
		if n := int(decl.MaxSize); n > 0 && len(want) > n {
			want = want[len(want)-n:]
		}
		var got []json.RawMessage
		require.NoError(t, json.Unmarshal(folded(decl, log).Value(), &got))
		require.Len(t, got, len(want))
		for i, v := range got {
			if decl.TTLMillis > 0 {
				var e struct {
					Value json.RawMessage `json:"value"`
					TS    int64           `json:"_ts"`
				}
				require.NoError(t, json.Unmarshal(v, &e))
				require.Positive(t, e.TS)
				v = e.Value
			}
			require.Equal(t, string(want[i]), string(v))
		}
	})
}

// Each voter and each messageId appears once, in any order of writes.
func TestVotesAndMessages_HoldEachKeyOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		reducer := rapid.SampledFrom([]string{"votes", "message"}).Draw(t, "reducer")
		log := drawn(t, reducer)
		var got []map[string]any
		require.NoError(t, json.Unmarshal(folded(wire.Channel{Reducer: reducer}, log).Value(), &got))
		key := map[string]string{"votes": "voter", "message": "messageId"}[reducer]
		want := map[any]map[string]any{}
		for _, w := range log {
			var v map[string]any
			require.NoError(t, json.Unmarshal(w.Value, &v))
			if _, there := want[v[key]]; there && reducer == "message" {
				continue // the first wins
			}
			want[v[key]] = v
		}
		require.Len(t, got, len(want))
		for _, v := range got {
			require.Equal(t, want[v[key]], v)
		}
	})
}
