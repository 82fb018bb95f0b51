package runstate

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/channel"
	"waybill.dev/waybill/protocol/wire"
)

// filled sets every field of a value to a non-zero value, also inside pointers, slices and maps.
func filled(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString("s" + string(rune('a'+*n%26)))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(t, v.Elem(), n)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(`{"<":1}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			filled(t, v.Index(i), n)
		}
	case reflect.Map:
		e := reflect.New(v.Type().Elem()).Elem()
		filled(t, e, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), e)
	case reflect.Interface:
		v.Set(reflect.ValueOf(map[string]any{"n": 1.5}))
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				filled(t, f, n)
			}
		}
	default:
		t.Fatalf("%s has a kind that the test does not support", v.Type())
	}
}

// A field added to the state but not to its encoding fails here.
func TestEncode_CoversAllFields(t *testing.T) {
	t.Parallel()
	rec := &wire.RunRecord{RunID: "r", Channels: map[string]wire.Channel{"declared": {Reducer: channel.Append, TTLMillis: 5, Schema: json.RawMessage(`{}`)}}}
	s, n := &State{}, 0
	filled(t, reflect.ValueOf(s).Elem(), &n)
	s.Record = rec
	s.busy, s.idle, s.idleSince, s.resting, s.rest, s.restSince = 7, 8, "9", 10, 11, "12"
	for _, node := range s.Nodes {
		node.Child, node.rests = s.Children[1], true
	}
	var saved channel.Saved
	filled(t, reflect.ValueOf(&saved).Elem(), &n)
	s.Channels = map[string]*channel.State{
		"declared": channel.Restore(rec.Channels["declared"], saved),
		"other":    channel.Restore(wire.Channel{Reducer: "votes", SchemaVersion: 3}, channel.Saved{}),
	}
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		require.False(t, v.Field(i).IsZero(), "the test does not fill %s", v.Type().Field(i).Name)
	}
	b, err := s.Encode()
	require.NoError(t, err)
	got, err := Decode(rec, b)
	require.NoError(t, err)
	require.Equal(t, s, got)
	require.Same(t, got.Children[1], got.Nodes["key"].Child, "a node's child is the run's")
}

// A truncated or extended encoding is an error, not another state.
func TestDecode_RejectsInvalidBytes(t *testing.T) {
	t.Parallel()
	s, n := &State{}, 0
	filled(t, reflect.ValueOf(s).Elem(), &n)
	s.Record, s.Channels = &wire.RunRecord{}, nil
	for _, node := range s.Nodes {
		node.Child = nil
	}
	b, err := s.Encode()
	require.NoError(t, err)
	for i := range b {
		_, err := Decode(s.Record, b[:i])
		require.ErrorIs(t, err, errEncoding, "%d bytes of %d", i, len(b))
	}
	_, err = Decode(s.Record, append(b[:len(b):len(b)], 0))
	require.ErrorIs(t, err, errEncoding)
	s.Nodes["key"].Child = &Child{RunID: "stranger"}
	_, err = s.Encode()
	require.ErrorContains(t, err, "stranger")
}

func FuzzDecode(f *testing.F) {
	b, err := New(&wire.RunRecord{RunID: "r"}).Encode()
	require.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode(&wire.RunRecord{RunID: "r"}, b)
		if err != nil {
			return
		}
		again, err := s.Encode()
		require.NoError(t, err)
		got, err := Decode(s.Record, again)
		require.NoError(t, err)
		require.Equal(t, s.Next, got.Next)
	})
}
