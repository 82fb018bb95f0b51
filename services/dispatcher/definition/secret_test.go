package definition_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/dispatcher/definition"
)

func TestHoldsSecret_NamesThePlacesAndNotWhatStandsThere(t *testing.T) {
	t.Parallel()
	given := `{"id":"w","nodes":[{"config":{"prompt":"use hunter2-hunter2","a/b":"hunter2-hunter2"}},{"n":1}],"metadata":{"hunter2-hunter2":1},"x":null}`
	redacted := `{"id":"w","nodes":[{"config":{"prompt":"use [REDACTED:k]","a/b":"[REDACTED:k]"}},{"n":1}],"metadata":{"[REDACTED:k]":1},"x":null}`
	f, ok := fault.As(definition.NewSecretFault([]byte(given), []byte(redacted)))
	require.True(t, ok)
	require.Equal(t, fault.ValidationError, f.Code)
	var places []string
	for _, p := range f.Details["problems"].([]fault.Problem) {
		places = append(places, p.Path)
	}
	require.Equal(t, []string{"/metadata/", "/nodes/0/config/a~1b", "/nodes/0/config/prompt"}, places)
	require.Contains(t, f.Message, "in 3 place(s)")
	require.NotContains(t, string(f.Envelope()), "hunter2")
}

func TestHoldsSecret_RevealsNothingOfUnreadableDocuments(t *testing.T) {
	t.Parallel()
	require.Equal(t, fault.ValidationError, fault.CodeOf(definition.NewSecretFault([]byte("{"), []byte("{}"))))
	require.ErrorContains(t, definition.NewSecretFault([]byte(`{"a":[1]}`), []byte(`{"a":[]}`)), "/a: ")
}
