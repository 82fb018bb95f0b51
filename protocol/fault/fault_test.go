package fault_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
)

func TestTable_HasASoundRowForEveryCode(t *testing.T) {
	t.Parallel()
	for _, c := range fault.Codes() {
		r := fault.Lookup(c)
		require.True(t, r.HTTP == 0 || (r.HTTP >= 400 && r.HTTP < 600), c)
		require.True(t, r.GRPC > 0 && r.GRPC <= 16, c)
		require.NotEmpty(t, r.Meaning, c)
		require.Regexp(t, `^[a-z][a-z0-9_]*$`, string(c))
	}
}

// Every code names who acts, and how.
func TestTable_NamesOwnerAndNextStep(t *testing.T) {
	t.Parallel()
	owners := []fault.Owner{fault.Model, fault.WorkflowAuthor, fault.Operator, fault.Caller}
	for _, c := range fault.Codes() {
		r := fault.Lookup(c)
		require.Contains(t, owners, r.Owner, c)
		require.Regexp(t, `^[A-Z].*\.$`, r.Next, c)
		require.NotEqual(t, r.Meaning, r.Next, c)
	}
}

// The statuses of OpenWOP host contract §9.2 and §9.4, by hand.
func TestTable_MatchesTheContract(t *testing.T) {
	t.Parallel()
	cases := []struct {
		code       fault.Code
		http, grpc int
	}{
		{fault.ValidationError, 400, 3},
		{fault.CapabilityRequired, 400, 9},
		{fault.Unauthenticated, 401, 16},
		{fault.Forbidden, 403, 7},
		{fault.CredentialForbidden, 403, 9},
		{fault.RunNotFound, 404, 5},
		{fault.WebhookURLRejected, 400, 3},
		{fault.SubscriptionNotFound, 404, 5},
		{fault.MethodNotAllowed, 405, 12},
		{fault.RunAlreadyActive, 409, 6},
		{fault.IdempotencyKeyMismatch, 409, 10},
		{fault.Conflict, 409, 10},
		{fault.RunTerminal, 409, 9},
		{fault.PayloadTooLarge, 413, 8},
		{fault.EnvelopeInvalid, 422, 9},
		{fault.RateLimited, 429, 8},
		{fault.InternalError, 500, 13},
		{fault.CapabilityNotProvided, 501, 9},
		{fault.ServiceUnavailable, 503, 14},
	}
	for _, c := range cases {
		r := fault.Lookup(c.code)
		require.Equal(t, c.http, r.HTTP, c.code)
		require.Equal(t, c.grpc, r.GRPC, c.code)
	}
}

func TestTable_HasNoRetiredCode(t *testing.T) {
	t.Parallel()
	for _, c := range []fault.Code{"invalid_credential", "idempotency_key_conflict", "internal", "envelope_payload_invalid", "envelope_refused_by_provider"} {
		require.False(t, fault.Known(c), c)
	}
	require.Equal(t, 500, fault.Lookup("no_such_code").HTTP)
}

func TestEnvelope_HasExactlyTheClosedMembers(t *testing.T) {
	t.Parallel()
	e := fault.New(fault.Forbidden, "the key lacks %s", "runs:read").With("scopeRequired", "runs:read").Wrap(errors.New("secret driver text"))
	require.JSONEq(t, `{"error":"forbidden","message":"the key lacks runs:read","details":{"scopeRequired":"runs:read"}}`, string(e.Envelope()))
	require.JSONEq(t, `{"error":"not_found","message":"gone"}`, string(fault.New(fault.NotFound, "gone").Envelope()))
}

func TestEnvelope_DropsDetailsThatAreNotJSON(t *testing.T) {
	t.Parallel()
	b := fault.New(fault.Conflict, "no").With("f", func() {}).Envelope()
	require.True(t, json.Valid(b))
	require.Contains(t, string(b), `"conflict"`)
}

func TestWith_DoesNotChangeTheOriginal(t *testing.T) {
	t.Parallel()
	base := fault.New(fault.Conflict, "x").With("a", 1)
	_ = base.With("b", 2)
	require.Equal(t, map[string]any{"a": 1}, base.Details)
}

func TestError_IsFoundThroughWrapping(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("outer: %w", fault.New(fault.RunNotFound, "no run"))
	require.ErrorIs(t, err, fault.New(fault.RunNotFound, ""))
	require.NotErrorIs(t, err, fault.New(fault.NotFound, ""))
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
	require.Equal(t, fault.InternalError, fault.CodeOf(errors.New("x")))
	require.Empty(t, fault.CodeOf(nil))
}

func FuzzParseEnvelope(f *testing.F) {
	f.Add([]byte(`{"error":"x","message":"y","details":{"a":[1]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := fault.ParseEnvelope(b)
		if err != nil {
			return
		}
		again, err := fault.ParseEnvelope(e.Envelope())
		require.NoError(t, err)
		require.Equal(t, e.Code, again.Code)
		require.Equal(t, e.Message, again.Message)
	})
}

// OpenWOP host contract §9.2, 422: validation_error has two statuses and keeps the right one on
// every
// transport.
func TestUnprocessable_DistinguishesTheTwoValidationErrors(t *testing.T) {
	t.Parallel()
	plain := fault.New(fault.ValidationError, "x").With("unprocessable", "no")
	require.Equal(t, fault.Lookup(fault.ValidationError), plain.Row())
	odd := plain.Unprocessable()
	require.Equal(t, plain.Row(), fault.Lookup(plain.Code), "the original is unchanged")
	again, err := fault.ParseEnvelope(odd.Envelope())
	require.NoError(t, err)
	for _, e := range []*fault.Error{odd, again} {
		require.Equal(t, 422, e.Row().HTTP)
		require.Equal(t, 9, e.Row().GRPC)
	}
	require.Equal(t, 409, fault.New(fault.Conflict, "x").Unprocessable().Row().HTTP)
}
