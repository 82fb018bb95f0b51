package workflow

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInteger_AcceptsAnyNotation(t *testing.T) {
	t.Parallel()
	for literal, want := range map[string]int64{
		"0": 0, "-0": 0, "7": 7, "-7": -7, "1.0": 1, "1e3": 1000, "1.5e1": 15, "2E+2": 200, "9007199254740993": 9007199254740993,
		"9223372036854775807": 9223372036854775807,
	} {
		n, ok := integer(json.Number(literal))
		require.True(t, ok, literal)
		require.Equal(t, want, n, literal)
	}
	for _, literal := range []string{"1.5", "1e-1", "1e30", "9223372036854775808", "1e999999999", "-1e999999999"} {
		_, ok := integer(json.Number(literal))
		require.False(t, ok, literal)
	}
}

func TestMembers_ReadByExactNameAndKind(t *testing.T) {
	t.Parallel()
	o := members(json.RawMessage(`{"n":1,"N":2,"s":"x","quoted":"1","null":null}`))
	n, ok := o.integer("n")
	require.True(t, ok)
	require.EqualValues(t, 1, n)
	require.Equal(t, "x", o.text("s"))
	for _, name := range []string{"s", "quoted", "null", "absent"} {
		_, ok := o.integer(name)
		require.False(t, ok, name)
	}
	require.Empty(t, o.text("n"))
	require.Empty(t, o.text("absent"))
	for _, other := range []string{``, `null`, `[]`, `"x"`, `{`} {
		require.Empty(t, members(json.RawMessage(other)), other)
	}
}

func TestPointer_EscapesNamesAndCountsIndexes(t *testing.T) {
	t.Parallel()
	require.Empty(t, pointer())
	require.Equal(t, "/nodes/12/inputs/a~1b~0c/", pointer("nodes", 12, "inputs", "a/b~c", ""))
}

func TestProblems_TouchIncludesPathsBelow(t *testing.T) {
	t.Parallel()
	var ps problems
	ps.add("/nodes/1/id", RuleUnique, "m")
	for path, touched := range map[string]bool{"/nodes": true, "/nodes/1": true, "/nodes/1/id": true, "/nodes/10": false, "/node": false, "/nodes/1/i": false, "": true} {
		require.Equal(t, touched, ps.touch(path), path)
	}
}

func TestAsDetails_IsAnEmptyListWithoutProblems(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(AsDetails(nil))
	require.NoError(t, err)
	require.Equal(t, `[]`, string(b))
}
