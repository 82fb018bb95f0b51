package vendor_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/vendor"
)

func TestCall_RecordsItsArrivalTime(t *testing.T) {
	t.Parallel()
	arrived := make(chan time.Time, 1)
	s := start(t, func(_ http.ResponseWriter, c vendor.Call) { arrived <- c.Arrived })
	begin := time.Now()
	post(t, s.URL(), "")
	at := <-arrived
	require.False(t, at.Before(begin) || at.After(time.Now()))
}

func TestCall_PausesForTheGivenTime(t *testing.T) {
	t.Parallel()
	type pause struct {
		ok   bool
		took time.Duration
	}
	for d, least := range map[time.Duration]time.Duration{0: 0, 20 * time.Millisecond: 20 * time.Millisecond} {
		took := make(chan pause, 1)
		s := start(t, func(_ http.ResponseWriter, c vendor.Call) {
			begin := time.Now()
			took <- pause{c.Pause(d), time.Since(begin)}
		})
		post(t, s.URL(), "")
		p := <-took
		require.True(t, p.ok)
		require.GreaterOrEqual(t, p.took, least)
	}
}

func TestCall_AwaitsSteps(t *testing.T) {
	t.Parallel()
	steps, passed := make(chan struct{}), make(chan bool)
	s := start(t, func(_ http.ResponseWriter, c vendor.Call) {
		passed <- c.Await(nil)
		passed <- c.Await(steps)
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		post(t, s.URL(), "")
	}()
	require.True(t, <-passed, "without steps, no wait")
	select {
	case <-passed:
		t.Fatal("it did not wait for the step")
	case steps <- struct{}{}:
	}
	require.True(t, <-passed)
	<-done
}

// waits are the ways a call can wait. Each lasts longer than the test.
var waits = map[string]func(vendor.Call, http.ResponseWriter) bool{
	"for ever":  func(c vendor.Call, _ http.ResponseWriter) bool { return c.Pause(-1) },
	"an hour":   func(c vendor.Call, _ http.ResponseWriter) bool { return c.Pause(time.Hour) },
	"for steps": func(c vendor.Call, _ http.ResponseWriter) bool { return c.Await(make(chan struct{})) },
	"before a piece": func(c vendor.Call, w http.ResponseWriter) bool {
		b := c.Begin(w, nil)
		b.Pace(0, make(chan struct{}))
		n, _ := io.WriteString(b, "too late")
		return n > 0
	},
}

// waiting starts a server whose calls wait. begun receives when a call starts to wait, ended
// receives the result.
func waiting(t *testing.T, wait func(vendor.Call, http.ResponseWriter) bool) (s *vendor.Server[string], begun chan struct{}, ended chan bool) {
	t.Helper()
	begun, ended = make(chan struct{}), make(chan bool, 1)
	s = start(t, func(w http.ResponseWriter, c vendor.Call) {
		close(begun)
		ended <- wait(c, w)
	})
	return s, begun, ended
}

func TestCall_StopsWaitingWhenTheCallerGoes(t *testing.T) {
	t.Parallel()
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, begun, ended := waiting(t, wait)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-begun
				cancel()
			}()
			_, err := http.DefaultClient.Do(request(t, s.URL(), "").WithContext(ctx)) //nolint:bodyclose // there is none
			require.ErrorIs(t, err, context.Canceled)
			require.False(t, <-ended)
		})
	}
}

func TestCall_StopsWaitingWhenTheServerCloses(t *testing.T) {
	t.Parallel()
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closes(t, "", wait)
			// The server reads no more of a body than its limit, so the unread rest hides the
			// broken connection. This call also ends slowly.
			closes(t, strings.Repeat("x", 2*maxBody), func(c vendor.Call, w http.ResponseWriter) bool {
				defer func() { <-time.After(10 * time.Millisecond) }()
				return wait(c, w)
			})
		})
	}
}

// closes closes a server while a call with this body waits.
func closes(t *testing.T, body string, wait func(vendor.Call, http.ResponseWriter) bool) {
	t.Helper()
	s, begun, ended := waiting(t, wait)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		<-begun
		s.Close()
	}()
	_, err := http.DefaultClient.Do(request(t, s.URL(), body)) //nolint:bodyclose // there is none
	require.Error(t, err, "an aborted answer must not look complete")
	<-closed
	require.Len(t, ended, 1, "Close returns when the call has ended")
	require.False(t, <-ended)
}
