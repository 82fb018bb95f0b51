package frame_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
)

func TestOwnership_FollowsTheFramesOfSessions(t *testing.T) {
	t.Parallel()
	first, second := time.Unix(1, 0), time.Unix(2, 0)
	owned := frame.Ownership{Owner: "P", Epoch: 3, Since: first}
	for name, c := range map[string]struct {
		before frame.Ownership
		writer string
		want   frame.Ownership
	}{
		"a claim":                          {frame.Ownership{}, "P-1@1", frame.Ownership{Owner: "P", Epoch: 1, Since: second}},
		"the owner goes on":                {owned, "P-1@3", owned},
		"another session of the process":   {owned, "P-2@4", frame.Ownership{Owner: "P", Epoch: 4, Since: second}},
		"another process":                  {owned, "Q-1@4", frame.Ownership{Owner: "Q", Epoch: 4, Since: second}},
		"a release":                        {owned, "P-1@3/released", frame.Ownership{Epoch: 3}},
		"a process with dashes":            {frame.Ownership{}, "pod-7-2a@1", frame.Ownership{Owner: "pod-7", Epoch: 1, Since: second}},
		"a wake frame":                     {owned, "Q-7", owned},
		"an external change":               {owned, frame.ExternalPrefix + "Q-7", owned},
		"the acceptor":                     {owned, "", owned},
		"no epoch":                         {owned, "Q-1@x", owned},
		"no process":                       {owned, "nobody@4", owned},
		"an external change with an epoch": {owned, frame.ExternalPrefix + "Q-7@4", owned},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := chain(t)[1].By(c.writer)
			f.Stored = second
			require.Equal(t, c.want, c.before.After(f))
		})
	}
}

func TestClaimed_SurvivesARoundTrip(t *testing.T) {
	t.Parallel()
	f := chain(t)[1].By(frame.Claimed("P-1", 7, false))
	require.Equal(t, "P", frame.Ownership{}.After(f).Owner)
	require.NoError(t, reparse(t, f).Verify(), "the hash covers the writer")
	require.Equal(t, frame.Ownership{Epoch: 7}, frame.Ownership{Owner: "P", Epoch: 7}.After(f.By(frame.Claimed("P-1", 7, true))))
}
