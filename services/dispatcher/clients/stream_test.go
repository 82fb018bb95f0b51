package clients_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/dispatcher/clients"
)

// redactors stand for the instances of the redactor service. One that is lost fails its streams, and
// no stream opens until another instance runs.
type redactors struct {
	redactorv1.RedactorClient
	// secret is removed from texts.
	secret string
	// lives has the number of pieces that each instance serves before it is lost.
	lives []int
	// back is when the next instance runs.
	back   time.Time
	opened int
}

var errLost = fault.New(fault.ServiceUnavailable, "a service of this host cannot be reached; try again")

func (r *redactors) RedactStream(context.Context, ...grpc.CallOption) (redactorv1.Redactor_RedactStreamClient, error) {
	if time.Now().Before(r.back) {
		return nil, errLost
	}
	r.opened++
	return &redactStream{of: r}, nil
}

// redactStream releases a text up to its last space, like a redactor that waits for the rest of a
// word.
type redactStream struct {
	redactorv1.Redactor_RedactStreamClient
	of   *redactors
	held string
	last bool
}

func (s *redactStream) Send(m *redactorv1.RedactStreamRequest) error {
	s.held, s.last = s.held+m.GetText(), m.GetLast()
	return nil
}

func (s *redactStream) Recv() (*redactorv1.RedactStreamResponse, error) {
	if lives := s.of.lives; len(lives) > 0 {
		if lives[0]--; lives[0] < 0 {
			s.of.lives, s.of.back = lives[1:], time.Now().Add(10*time.Second)
			return nil, errLost
		}
	}
	settled := s.held
	if !s.last {
		settled = s.held[:strings.LastIndexByte(s.held, ' ')+1]
	}
	s.held = s.held[len(settled):]
	return &redactorv1.RedactStreamResponse{Text: strings.ReplaceAll(settled, s.of.secret, "[REDACTED:k]")}, nil
}

// said pushes pieces, and returns what they release.
func said(t *testing.T, r *redactors, pieces ...string) (string, error) {
	t.Helper()
	text, err := clients.Redactor{Client: r, Registrations: clients.NewRegistrations(r)}.Scrubber("acme", "r", false).Open(t.Context())
	require.NoError(t, err)
	defer text.Close()
	var out strings.Builder
	for i, p := range pieces {
		released, err := text.Push(p, i == len(pieces)-1)
		if err != nil {
			return out.String(), err
		}
		out.WriteString(released)
	}
	return out.String(), nil
}

var pieces = []string{"The key ", "is sk-", "live-", "1, as", " you know", "."}

// The text goes on with another redactor, wherever the first one is lost, and twice.
func TestScrub_SurvivesALostRedactor(t *testing.T) {
	t.Parallel()
	for lost := range len(pieces) + 1 {
		synctest.Test(t, func(t *testing.T) {
			r := &redactors{secret: "sk-live-1,", lives: []int{lost, 1}}
			out, err := said(t, r, pieces...)
			require.NoError(t, err)
			require.Equal(t, "The key is [REDACTED:k] as you know.", out, "lost after %d pieces", lost)
			if lost < len(pieces) {
				require.Greater(t, r.opened, 1)
			}
		})
	}
}

// A redactor that redacts the released text in another way cannot continue it.
func TestScrub_EndsIfTheSecretsHaveChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &redactors{secret: "nothing", lives: []int{4}}
		text, err := clients.Redactor{Client: r, Registrations: clients.NewRegistrations(r)}.Scrubber("acme", "r", false).Open(t.Context())
		require.NoError(t, err)
		defer text.Close()
		for _, p := range pieces[:4] {
			_, err := text.Push(p, false)
			require.NoError(t, err)
		}
		r.secret = "key"
		_, err = text.Push(pieces[4], false)
		require.ErrorContains(t, err, "secrets have changed")
	})
}

// A redactor that stays away fails the call in the end.
func TestScrub_WaitsForALimitedTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &redactors{lives: []int{0, 0, 0, 0, 0, 0, 0, 0, 0}}
		began := time.Now()
		_, err := said(t, r, "x")
		require.ErrorIs(t, err, errLost)
		require.Less(t, time.Since(began), 2*time.Minute)
	})
}
