package rpc

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"
)

// names counts how often a name is looked up.
type names struct {
	looked, closed int
	found          resolver.ClientConn // is told what was found
}

func (n *names) Build(_ resolver.Target, found resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	n.looked++
	n.found = found
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

// caller has no use for a name without addresses.
type caller struct {
	resolver.ClientConn
	told []resolver.State
}

func (c *caller) UpdateState(found resolver.State) error {
	c.told = append(c.told, found)
	if len(found.Addresses) == 0 {
		return balancer.ErrBadResolverState
	}
	return nil
}

// A service that was away for long, as a headless Service of Kubernetes without a pod that is ready,
// is found again as soon as its name has an address: gRPC looks seldom where what it found was refused.
func TestLookups_AreAsFrequentWhileANameHasNoAddress(t *testing.T) {
	t.Parallel()
	n, c := &names{}, &caller{}
	r, err := lookups{n, time.Minute}.Build(resolver.Target{}, c, resolver.BuildOptions{})
	require.NoError(t, err)
	defer r.Close()
	for _, found := range []resolver.State{{}, {Addresses: []resolver.Address{{Addr: "10.0.0.1:1"}}}} {
		require.NoError(t, n.found.UpdateState(found))
		require.Equal(t, found, c.told[len(c.told)-1])
	}
}
