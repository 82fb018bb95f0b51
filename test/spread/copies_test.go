package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCopies_DefaultToTwo(t *testing.T) {
	for given, want := range map[string]map[string]int{
		"":                       {"redactor": 2, "acceptor": 2, "eventlog": 2, "dispatcher": 2, "gateway": 2},
		"dispatcher=4,gateway=1": {"redactor": 2, "acceptor": 2, "eventlog": 2, "dispatcher": 4, "gateway": 1},
		"dispatcher=0":           nil,
		"dispatchers=2":          nil,
		"dispatcher":             nil,
	} {
		t.Setenv(copiesOf, given)
		got, err := copies()
		require.Equal(t, want == nil, err != nil, given)
		require.Equal(t, want, got, given)
	}
}
