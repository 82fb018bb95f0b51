package rpc

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
)

// names counts how often a name is looked up.
type names struct{ looked, closed int }

func (n *names) Build(resolver.Target, resolver.ClientConn, resolver.BuildOptions) (resolver.Resolver, error) {
	n.looked++
	return n, nil
}
func (*names) Scheme() string                          { return "dns" }
func (n *names) ResolveNow(resolver.ResolveNowOptions) { n.looked++ }
func (n *names) Close()                                { n.closed++ }

// A server that is added under a name is found though no connection ends.
func TestLookups_AreRepeatedUntilTheConnectionIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &names{}
		r, err := lookups{n, time.Minute}.Build(resolver.Target{}, nil, resolver.BuildOptions{})
		require.NoError(t, err)
		<-time.After(150 * time.Second)
		synctest.Wait()
		require.Equal(t, 3, n.looked)
		r.Close()
		require.Equal(t, 1, n.closed)
		<-time.After(time.Hour)
		require.Equal(t, 3, n.looked)
	})
	require.Equal(t, "dns", Lookups(time.Minute).Scheme())
}
