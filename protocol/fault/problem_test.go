package fault_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
)

func TestInvalid_NamesThePlace(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]*fault.Error{
		"/a: want a string":        fault.InvalidBody("/a", "want a %s", "string"),
		"the body: want an object": fault.InvalidBody("", "want an object"),
		"limit: want 1 to 200":     fault.InvalidQuery("limit", "want 1 to %d", 200),
		"the query: want pairs":    fault.InvalidQuery("", "want pairs"),
		"X-A: want text":           fault.InvalidHeader("X-A", "want text"),
		"kind: want one of [a b]":  fault.OneOf("kind", []string{"a", "b"}),
	} {
		require.Equal(t, fault.ValidationError, err.Code)
		require.Equal(t, want, err.Message)
		require.Len(t, err.Details["problems"], 1)
	}
	require.JSONEq(t, `{"error":"validation_error","message":"kind: want one of [a]",
		"details":{"problems":[{"in":"query","path":"kind","message":"want one of [a]","allowed":["a"]}]}}`,
		string(fault.OneOf("kind", []string{"a"}).Envelope()))
}

func TestInBody_MovesParametersToMembers(t *testing.T) {
	t.Parallel()
	require.Equal(t, fault.InvalidBody("/limit", "want 1"), fault.InBody(fault.InvalidQuery("limit", "want 1")))
	for _, err := range []error{nil, errors.New("x"), fault.NoRun(), fault.InvalidBody("/a", "want 1")} {
		require.Equal(t, err, fault.InBody(err))
	}
}

// Clients may rely on details.problems of a validation_error.
func TestEnvelope_OfAValidationErrorAlwaysListsProblems(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `{"error":"validation_error","message":"too slow","details":{"problems":[{"path":"","message":"too slow"}]}}`,
		string(fault.New(fault.ValidationError, "too slow").Envelope()))
	require.JSONEq(t, `{"error":"conflict","message":"no"}`, string(fault.New(fault.Conflict, "no").Envelope()))
}
