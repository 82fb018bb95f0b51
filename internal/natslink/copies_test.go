package natslink_test

import (
	"testing"

	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natslink"
)

func TestCopies_CountsThoseThatAreInSync(t *testing.T) {
	t.Parallel()
	current, behind, gone := &js.PeerInfo{Current: true}, &js.PeerInfo{}, &js.PeerInfo{Current: true, Offline: true}
	of := func(peers ...*js.PeerInfo) *js.ClusterInfo { return &js.ClusterInfo{Leader: "a", Replicas: peers} }
	for name, tc := range map[string]struct {
		replicas, inSync int
		cluster          *js.ClusterInfo
		want             string
	}{
		"one server":                        {1, 0, nil, ""},
		"one copy in a cluster":             {1, 0, of(), ""},
		"all of three":                      {3, 0, of(current, current), ""},
		"a majority":                        {3, 0, of(current, behind), ""},
		"a majority, and all are wanted":    {3, 3, of(current, behind), "2 of 3 copies"},
		"one that has gone, and all wanted": {3, 3, of(current, gone), "2 of 3 copies"},
		"the leader alone":                  {3, 0, of(behind, gone), "1 of 3 copies"},
		"the leader alone, which is enough": {3, 1, of(behind, gone), ""},
		"no leader": {
			3, 0,
			&js.ClusterInfo{Replicas: []*js.PeerInfo{current, current}},
			"0 of 3 copies",
		},
		"a majority of five":           {5, 0, of(current, current, behind, behind), ""},
		"less than a majority of five": {5, 0, of(current, behind, behind, behind), "2 of 5 copies"},
	} {
		err := natslink.Copies{Replicas: tc.replicas, InSync: tc.inSync}.Check(&js.StreamInfo{
			Config:  js.StreamConfig{Name: "LOG", Replicas: tc.replicas},
			Cluster: tc.cluster,
		})
		if tc.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, "stream LOG: "+tc.want, name)
	}
}

func TestCopies_AreAsManyAsAreWanted(t *testing.T) {
	t.Parallel()
	info := &js.StreamInfo{Config: js.StreamConfig{Name: "LOG", Replicas: 1}}
	require.NoError(t, natslink.Copies{Replicas: 1}.Check(info))
	require.EqualError(t, natslink.Copies{Replicas: 3}.Check(info), "stream LOG has 1 copies, want 3")
}
