package sticky

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/resolver"
)

type conn struct {
	balancer.SubConn
	addr string
}

func choices(t *testing.T, addrs []string, keys int) []string {
	t.Helper()
	ready := map[balancer.SubConn]base.SubConnInfo{}
	for _, a := range addrs {
		ready[&conn{addr: a}] = base.SubConnInfo{Address: resolver.Address{Addr: a}}
	}
	p := pickers{}.Build(base.PickerBuildInfo{ReadySCs: ready})
	var out []string
	for k := range keys {
		res, err := p.Pick(balancer.PickInfo{Ctx: With(t.Context(), fmt.Sprint("tenant-", k))})
		require.NoError(t, err)
		out = append(out, res.SubConn.(*conn).addr) //nolint:forcetypeassert // ours
	}
	return out
}

func TestPick_IsTheSameForAllCallers(t *testing.T) {
	t.Parallel()
	addrs := []string{"10.0.0.1:9092", "10.0.0.2:9092", "10.0.0.3:9092"}
	first := choices(t, addrs, 3000)
	slices.Reverse(addrs)
	require.Equal(t, first, choices(t, addrs, 3000), "whatever the order of the addresses")
	count := map[string]int{}
	for _, a := range first {
		count[a]++
	}
	for _, a := range addrs {
		require.InDelta(t, 1000, count[a], 120, "keys are spread")
	}
}

func TestPick_MovesOnlyTheKeysOfTheLeavingServer(t *testing.T) {
	t.Parallel()
	three := choices(t, []string{"a:1", "b:1", "c:1"}, 3000)
	two := choices(t, []string{"a:1", "c:1"}, 3000)
	for i := range three {
		if three[i] != "b:1" {
			require.Equal(t, three[i], two[i])
		}
	}
}

func TestBuild_WaitsForAServer(t *testing.T) {
	t.Parallel()
	_, err := pickers{}.Build(base.PickerBuildInfo{}).Pick(balancer.PickInfo{Ctx: t.Context()})
	require.ErrorIs(t, err, balancer.ErrNoSubConnAvailable)
}
