package lint_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A problem that the base has elsewhere does not prevent an edit. One in the edited node does.
func TestCheckEdit_LeavesOutProblemsOfTheBase(t *testing.T) {
	t.Parallel()
	of := func(config string) []byte {
		return fmt.Appendf(nil, `{"id":"w","name":"w","version":"1","nodes":[
			{"id":"old","typeId":"core.loop","config":{"expression":"item","count":1,"odd":1}},
			{"id":"a","typeId":"core.loop","config":%s}]}`, config)
	}
	base := of(`{"expression":"item","count":1}`)
	require.Equal(t, []string{"/nodes/0/config/odd additionalProperties"}, paths(host().Check(base).Problems))
	require.Empty(t, host().CheckEdit(base, of(`{"expression":"item","count":2}`), "a").Problems)
	bad := of(`{"expression":"item","count":1,"odd":1}`)
	require.Equal(t, []string{"/nodes/1/config/odd additionalProperties"}, paths(host().CheckEdit(base, bad, "a").Problems))
	require.Equal(t, []string{"/nodes/1/config/odd additionalProperties"}, paths(host().CheckEdit(bad, bad, "a").Problems))
	require.Equal(t, []string{"/nodes/0/config/odd additionalProperties"}, paths(host().CheckEdit(of(`{"expression":"item"}`), bad, "old").Problems[:1]))
}
