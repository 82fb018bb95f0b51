package peer

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"waybill.dev/waybill/protocol/fault"
)

// answers is a connection with one answer to every call.
type answers struct {
	grpc.ClientConnInterface
	err   error
	calls int
}

func (a *answers) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	a.calls++
	return a.err
}

// Only reads go to a replica that lacks another service, and only without a healthy replica.
func TestEither_SendsOnlyReadsToAnUnhealthyReplica(t *testing.T) {
	t.Parallel()
	away, refused := fault.New(fault.ServiceUnavailable, "no server"), fault.New(fault.NotFound, "no such thing")
	for name, c := range map[string]struct {
		method string
		first  error
		want   error
		reads  int
	}{
		"a read while replicas are there":  {"/s/Get", nil, nil, 0},
		"a read that is refused":           {"/s/Get", refused, refused, 0},
		"a read while none is there":       {"/s/Get", away, nil, 1},
		"a write while none is there":      {"/s/Put", away, away, 0},
		"a write while replicas are there": {"/s/Put", nil, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reads := &answers{}
			require.Equal(t, c.want, either{
				&answers{err: c.first},
				reads,
				[]string{"/s/Get"},
			}.Invoke(t.Context(), c.method, nil, nil))
			require.Equal(t, c.reads, reads.calls)
		})
	}
}
