package outbound_test

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const date = "Thu, 26 Nov 2026 12:00:00 GMT"
	for _, tc := range []struct {
		header, value, date string
		want                time.Duration
	}{
		{"Retry-After", "7", "", 7 * time.Second},
		{"Retry-After", "0.5", "", 500 * time.Millisecond},
		{"Retry-After", "0", "", 0},
		{"Retry-After", "-3", "", 0},
		{"Retry-After", "NaN", "", 0},
		{"Retry-After", "Inf", "", 0},
		{"Retry-After", "1e300", "", 24 * time.Hour},
		{"Retry-After", "99999999999999999999", "", 24 * time.Hour},
		{"Retry-After", "soon", date, 0},
		{"Retry-After", "", date, 0},
		{"Retry-After", "Thu, 26 Nov 2026 12:01:30 GMT", date, 90 * time.Second},
		{"Retry-After", "Thu, 26 Nov 2026 11:00:00 GMT", date, 0},
		{"Retry-After", "Thu, 26 Nov 2099 12:00:00 GMT", date, 24 * time.Hour},
		{"Retry-After", "Thu, 26 Nov 2026 12:01:30 GMT", "", 0},
		{"Retry-After", "Thu, 26 Nov 2026 12:01:30 GMT", "yesterday", 0},
		{"Retry-After-Ms", "1500", "", 1500 * time.Millisecond},
		{"Retry-After-Ms", "1500.5", "", 1500500 * time.Microsecond},
		{"Retry-After-Ms", "-1", "", 0},
		{"Retry-After-Ms", "NaN", "", 0},
		{"Retry-After-Ms", "1e300", "", 24 * time.Hour},
	} {
		h := http.Header{}
		h.Set(tc.header, tc.value)
		if tc.date != "" {
			h.Set("Date", tc.date)
		}
		require.Equal(t, tc.want, outbound.RetryAfter(h), "%+v", tc)
	}
	require.Equal(t, 250*time.Millisecond, outbound.RetryAfter(http.Header{
		"Retry-After":    {"1"},
		"Retry-After-Ms": {"250"},
	}), "the finer one counts")
}

func TestBroken_KnowsWhatPasses(t *testing.T) {
	t.Parallel()
	dial := func(err error) error {
		return &url.Error{
			Op:  "Post",
			URL: "http://model/v1?secret",
			Err: errors.Join(outbound.ErrUnanswered, &net.OpError{Op: "dial", Err: err}),
		}
	}
	for name, tc := range map[string]struct {
		err                 error
		capacity, retryable bool
	}{
		"refused":  {dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), true, true},
		"no route": {dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), true, true},
		"reset before a byte": {
			errors.Join(outbound.ErrUnanswered, os.NewSyscallError("read", syscall.ECONNRESET)), true, true,
		},
		"closed before a byte":     {errors.Join(outbound.ErrUnanswered, io.EOF), true, true},
		"reset within the answer":  {os.NewSyscallError("read", syscall.ECONNRESET), false, true},
		"ended within the answer":  {io.ErrUnexpectedEOF, false, true},
		"resolver down":            {dial(&net.DNSError{Err: "server misbehaving", IsTemporary: true}), true, true},
		"no such name":             {dial(&net.DNSError{Err: "no such host", IsNotFound: true}), false, true},
		"certificate":              {errors.Join(outbound.ErrUnanswered, x509.UnknownAuthorityError{}), false, true},
		"redirect":                 {errors.Join(outbound.ErrUnanswered, outbound.ErrRedirect), false, false},
		"nothing known":            {nil, false, true},
		"something else, wrapped ": {fmt.Errorf("call: %w", errors.New("odd")), false, true},
	} {
		e := outbound.NewTransportError(tc.err)
		require.Equal(t, tc.capacity, e.Capacity, name)
		require.Equal(t, tc.retryable, e.Retryable, name)
		require.NotContains(t, e.Message, "secret", name)
	}
	for status, want := range map[int]bool{
		429: true,
		503: true,
		529: true,
		500: false,
		502: false,
		504: false,
		400: false,
	} {
		require.Equal(t, want, outbound.IsOverloaded(status), status)
	}
}
