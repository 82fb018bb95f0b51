package rpc

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
)

func TestCloner_CopiesAllButLargeBytes(t *testing.T) {
	t.Parallel()
	large := append(make([]byte, 0, 4*largeMessage), bytes.Repeat([]byte("x"), 2*largeMessage)...)
	nested, err := structpb.NewStruct(map[string]any{"a": map[string]any{"b": []any{1.0, "c"}}, "long": string(large)})
	require.NoError(t, err)
	for name, m := range map[string]proto.Message{
		"small":    &dispatcherv1.StartRunRequest{Tenant: "a", Inputs: []byte("{}")},
		"large":    &dispatcherv1.StartRunRequest{Tenant: "a", Inputs: large, Tags: []string{"t"}, Dedup: true},
		"messages": &openwopv1.CreateRunRequest{WorkflowId: "w", Inputs: &openwopv1.JsonDocument{Json: large}, TenantId: proto.String("")},
		"lists":    &redactorv1.RedactRequest{Documents: [][]byte{large, nil, []byte("1")}, Texts: []string{"t"}, Scope: &redactorv1.Scope{Tenant: "a"}},
		"maps":     nested,
	} {
		c, err := cloner{}.Clone(m)
		require.NoError(t, err, name)
		require.True(t, proto.Equal(m, c.(proto.Message)), name) //nolint:forcetypeassert // it is a copy
		into := m.ProtoReflect().New().Interface()
		require.NoError(t, cloner{}.Copy(into, m))
		require.True(t, proto.Equal(m, into), name)
	}
	from := &dispatcherv1.StartRunRequest{Inputs: large, Tags: []string{"t"}}
	c, err := cloner{}.Clone(from)
	require.NoError(t, err)
	to := c.(*dispatcherv1.StartRunRequest) //nolint:forcetypeassert // it is a copy
	require.Same(t, &from.Inputs[0], &to.Inputs[0], "the bytes are not copied")
	to.Tags[0], to.Tenant = "other", "b"
	require.Equal(t, "t", from.GetTags()[0])
	require.Empty(t, from.GetTenant())
	require.Equal(t, 2*largeMessage, cap(to.GetInputs()), "appending copies")
	require.ErrorContains(t, cloner{}.Copy(&redactorv1.RedactRequest{}, from), "is not")
}
