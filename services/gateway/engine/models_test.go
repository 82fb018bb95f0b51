package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
)

func (*dispatcher) ListModelCapabilities(_ context.Context, r *dispatcherv1.ListModelCapabilitiesRequest, _ ...grpc.CallOption) (*dispatcherv1.ListModelCapabilitiesResponse, error) {
	return &dispatcherv1.ListModelCapabilitiesResponse{TrustsUnknown: true, Capabilities: []*dispatcherv1.ModelCapability{
		{
			Id:         "reasoning",
			RequiredBy: []string{"of " + r.GetTenant()},
			Models:     []*dispatcherv1.CapableModel{{Provider: "p", Model: "m", OwnKey: true}},
		},
		{Id: "vision-input"},
	}}, nil
}

func (*eventLog) ListSubstitutions(_ context.Context, r *eventlogv1.ListSubstitutionsRequest, _ ...grpc.CallOption) (*eventlogv1.ListSubstitutionsResponse, error) {
	return &eventlogv1.ListSubstitutionsResponse{Since: r.GetSince(), Substitutions: []*eventlogv1.Substitution{{
		OriginalProvider: "a",
		OriginalModel:    "b",
		FallbackProvider: "[REDACTED]",
		FallbackModel:    "[REDACTED]",
		Missing:          []string{"reasoning"},
		Count:            3,
		Runs:             2,
		LastAt:           "then",
		RunIds:           []string{"of " + r.GetTenant()},
	}}}, nil
}

func TestListModelCapabilities_IsForTheCallersTenant(t *testing.T) {
	t.Parallel()
	got, err := newRig(t).ListModelCapabilities(as(t, liveKey), &hostv1.ListModelCapabilitiesRequest{})
	require.NoError(t, err)
	want := &hostv1.ListModelCapabilitiesResponse{TrustsUnknown: true, Capabilities: []*hostv1.ModelCapability{
		{
			Id:         "reasoning",
			Enforced:   true,
			RequiredBy: []string{"of acme"},
			Models:     []*hostv1.CapableModel{{Provider: "p", Model: "m", OwnKey: true}},
		},
		{Id: "vision-input"},
	}}
	require.True(t, proto.Equal(want, got), "%v", got)
}

func TestListModelSubstitutions_CoversAnHourByDefault(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0).UTC()
	ago := func(d time.Duration) string { return now.Add(-d).Format(time.RFC3339) }
	for _, tt := range []struct {
		since *string
		want  string // empty means refused
	}{
		{nil, ago(time.Hour)},
		{proto.String(ago(24 * time.Hour)), ago(24 * time.Hour)},
		{proto.String(now.Add(-time.Minute).In(time.FixedZone("", 7200)).Format(time.RFC3339)), ago(time.Minute)},
		{proto.String(ago(25 * time.Hour)), ""},
		{proto.String("2h"), ""},
	} {
		got, err := newRig(t).ListModelSubstitutions(as(t, liveKey), &hostv1.ListModelSubstitutionsRequest{Since: tt.since})
		if tt.want == "" {
			require.Equal(t, fault.ValidationError, fault.CodeOf(err), tt.since)
			continue
		}
		require.NoError(t, err)
		want := &hostv1.ListModelSubstitutionsResponse{Since: tt.want, Substitutions: []*hostv1.ModelSubstitution{{
			OriginalProvider: "a", OriginalModel: "b", FallbackProvider: "[REDACTED]", FallbackModel: "[REDACTED]",
			MissingCapabilities: []string{"reasoning"}, Count: 3, Runs: 2, LastAt: "then", RunIds: []string{"of acme"},
		}}}
		require.True(t, proto.Equal(want, got), "%v", got)
	}
}
