package discovery_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/discovery"
)

func newSource(ready func() error, d *dispatcher) *discovery.Source {
	return discovery.New(discovery.Config{
		GRPCEndpoint: func() string { return "grpc://h:1" }, Ready: ready,
	}, d, &acceptor{}, func() time.Time { return time.Unix(1000, 0) })
}

// Clients cache the document, so an incomplete one is not served.
func TestDocument_WaitsForTheHost(t *testing.T) {
	t.Parallel()
	notReady := errors.New("the host loads its workflows")
	s := newSource(func() error { return notReady }, &dispatcher{can: &dispatcherv1.DescribeResponse{}})
	_, err := s.Document(t.Context())
	e, ok := fault.As(err)
	require.True(t, ok)
	require.Equal(t, fault.ServiceUnavailable, e.Code)
	require.Positive(t, e.RetryAfter)
	require.Contains(t, e.Message, "loads its workflows")
	notReady = nil
	_, err = s.Document(t.Context())
	require.NoError(t, err)
	notReady = errors.New("later trouble")
	_, err = s.Document(t.Context())
	require.NoError(t, err, "what the host offers does not change with it")
}

// The clock stands still: the cached document is current, until it is known to have changed.
func TestDocument_ChangesImmediately(t *testing.T) {
	t.Parallel()
	d := &dispatcher{can: &dispatcherv1.DescribeResponse{}}
	s := newSource(nil, d)
	before, err := s.Document(t.Context())
	require.NoError(t, err)
	d.can = &dispatcherv1.DescribeResponse{RuntimeCapabilities: []string{"gpu"}}
	same, err := s.Document(t.Context())
	require.NoError(t, err)
	require.Equal(t, before.ETag, same.ETag)
	s.Changed()
	after, err := s.Document(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, before.ETag, after.ETag)
}
