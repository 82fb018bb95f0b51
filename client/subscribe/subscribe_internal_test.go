package subscribe

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// leaderless is a consumer without a leader.
type leaderless struct{ jetstream.Consumer }

func (leaderless) Next(...jetstream.FetchOpt) (jetstream.Msg, error) {
	return nil, jetstream.ErrNoStreamResponse
}

func (leaderless) Info(context.Context) (*jetstream.ConsumerInfo, error) {
	return nil, jetstream.ErrNoStreamResponse
}

func TestRun_ReportsWhatItTriesAgain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var causes []error
	s := &Subscription{consumer: leaderless{}, cfg: Config{Unavailable: func(err error) {
		if causes = append(causes, err); len(causes) == 2 {
			cancel()
		}
	}}}
	require.NoError(t, s.Run(ctx, func(context.Context, Event) error { return nil }))
	require.Equal(t, []error{jetstream.ErrNoStreamResponse, jetstream.ErrNoStreamResponse}, causes)
}
