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
	found          resolver.ClientConn // receives the resolved addresses
}

func (n *names) Build(_ resolver.Target, found resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	n.looked++
	n.found = found
	return n, nil
}
func (*names) Scheme() string                          { return "dns" }
func (n *names) ResolveNow(resolver.ResolveNowOptions) { n.looked++ }
func (n *names) Close()                                { n.closed++ }

// A server that is added under a name is found without waiting for a connection to end.
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

// caller rejects a state without addresses.
type caller struct {
	resolver.ClientConn
	states []resolver.State
}

func (c *caller) UpdateState(found resolver.State) error {
	c.states = append(c.states, found)
	if len(found.Addresses) == 0 {
		return balancer.ErrBadResolverState
	}
	return nil
}

// A service that was unavailable for long, such as a headless Service without a ready pod, is found
// soon after its name has an address. By default gRPC resolves a rejected name rarely.
func TestLookups_AreAsFrequentWhileANameHasNoAddress(t *testing.T) {
	t.Parallel()
	n, c := &names{}, &caller{}
	r, err := lookups{n, time.Minute}.Build(resolver.Target{}, c, resolver.BuildOptions{})
	require.NoError(t, err)
	defer r.Close()
	for _, found := range []resolver.State{{}, {Addresses: []resolver.Address{{Addr: "10.0.0.1:1"}}}} {
		require.NoError(t, n.found.UpdateState(found))
		require.Equal(t, found, c.states[len(c.states)-1])
	}
}
