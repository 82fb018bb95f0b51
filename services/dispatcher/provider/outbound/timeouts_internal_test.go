package outbound

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// slow is a server in fake time: it connects, answers and sends pieces after the given
// times.
type slow struct {
	connect, header time.Duration
	pieces          []time.Duration
}

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := provider.Pause(r.Context(), s.connect); err != nil {
		return nil, err
	}
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
	if err := provider.Pause(r.Context(), s.header); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"text/event-stream"}},
		Body:       &slowBody{ctx: r.Context(), pieces: s.pieces},
	}, nil
}

type slowBody struct {
	ctx    context.Context //nolint:containedctx // the request's own
	pieces []time.Duration
}

func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.pieces) == 0 {
		return 0, io.EOF
	}
	if err := provider.Pause(b.ctx, b.pieces[0]); err != nil {
		return 0, err
	}
	b.pieces = b.pieces[1:]
	return copy(p, ": ping\n\n"), nil
}

func (*slowBody) Close() error { return nil }

func TestTimeLimits(t *testing.T) {
	t.Parallel()
	const s, m = time.Second, time.Minute
	for name, tc := range map[string]struct {
		server   slow
		limits   provider.Timeouts
		want     Limit
		value    time.Duration
		capacity bool
	}{
		"thinks for 330 s before its header": {server: slow{header: 330 * s, pieces: []time.Duration{s, s}}},
		"thinks for 330 s before its answer": {server: slow{pieces: []time.Duration{330 * s, s}}},
		"thinks for 330 s within its answer": {server: slow{pieces: []time.Duration{s, 330 * s, s}}},
		"many short silences":                {server: slow{pieces: []time.Duration{9 * m, 9 * m, 9 * m, 9 * m}}},
		"connects too slowly": {
			server:   slow{connect: 11 * s},
			want:     LimitConnect,
			value:    10 * s,
			capacity: true,
		},
		"no header": {server: slow{header: 11 * m}, want: LimitFirstByte, value: 10 * m},
		"no byte, header and answer together": {
			server: slow{header: 6 * m, pieces: []time.Duration{6 * m}},
			want:   LimitFirstByte,
			value:  10 * m,
		},
		"silence": {
			server: slow{pieces: []time.Duration{s, 11 * m}},
			want:   LimitSilence,
			value:  10 * m,
		},
		"the request's limits win: connect": {
			slow{connect: 3 * s},
			provider.Timeouts{Connect: 2 * s},
			LimitConnect,
			2 * s,
			true,
		},
		"the request's limits win: first byte": {
			slow{header: 3 * s},
			provider.Timeouts{FirstByte: 2 * s},
			LimitFirstByte,
			2 * s,
			false,
		},
		"the request's limits win: silence": {
			slow{pieces: []time.Duration{s, 3 * s}},
			provider.Timeouts{Silence: 2 * s},
			LimitSilence,
			2 * s,
			false,
		},
		"the request's limits win: longer": {
			server: slow{pieces: []time.Duration{s, 20 * m}},
			limits: provider.Timeouts{Silence: time.Hour},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := transport{RoundTripper: tc.server, limits: Server{}.Timeouts()}
				r, err := http.NewRequestWithContext(Within(t.Context(), tc.limits), http.MethodPost, "http://model", nil)
				require.NoError(t, err)
				res, err := w.RoundTrip(r)
				if err == nil {
					_, err = io.ReadAll(res.Body)
					require.NoError(t, res.Body.Close())
				}
				if tc.want == "" {
					require.NoError(t, err)
					return
				}
				limit, ok := errors.AsType[*LimitError](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, LimitError{tc.want, tc.value}, *limit)
				e := NewTransportError(err)
				require.Contains(t, e.Message, "limit "+string(tc.want)+": "+tc.value.String())
				require.Contains(t, e.Message, "timeouts."+string(tc.want)+"Ms")
				require.True(t, e.Retryable)
				require.Equal(t, tc.capacity, e.Capacity)
			})
		})
	}
}
