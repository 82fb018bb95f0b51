package channel

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
)

// A field added to State but not to Saved fails here.
func TestRestore_GivesTheStateThatWasSaved(t *testing.T) {
	t.Parallel()
	s := &State{
		decl: wire.Channel{Reducer: Votes}, entries: []entry{{value: json.RawMessage(`1`), ms: 2, key: "k"}}, value: json.RawMessage(`3`),
		isList: true, written: true, broken: &Break{Version: 1, Current: 2, EventID: "e"},
	}
	for _, v := range []reflect.Value{reflect.ValueOf(s).Elem(), reflect.ValueOf(s.entries[0])} {
		for i := range v.NumField() {
			require.False(t, v.Field(i).IsZero(), "the test does not set %s", v.Type().Field(i).Name)
		}
	}
	require.Equal(t, s, Restore(s.Declaration(), s.Save()))
	require.Equal(t, &State{}, Restore(wire.Channel{}, (&State{}).Save()))
	require.Equal(t, &State{entries: []entry{}}, Restore(wire.Channel{}, (&State{entries: []entry{}}).Save()))
}
