package outbound

import (
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// Broken is a call without an answer, or with half of one.
func Broken(err error) *provider.Error {
	e := &provider.Error{Code: provider.CodeUnavailable, Retryable: true, Cause: causeOf(err)}
	switch {
	case errors.Is(err, ErrTooLong):
		e.Code, e.Message, e.Retryable = provider.CodeContentTooLong, "a single event of the model's server is longer than 16 MiB", false
	case errors.Is(err, ErrRedirect):
		e.Message, e.Retryable = "the model's server redirects to another address; configure that one if it is meant", false
	case errors.Is(err, ErrNoStream), errors.Is(err, ErrNoContent):
		e.Message, e.Retryable = "what answers at the model's address does not stream answers of its API; check the address", false
	case errors.Is(err, ErrSilent):
		e.Message = "the model's server kept silent for too long"
	default:
		e.Message = "the model's server could not be reached, or ended its answer early"
	}
	return e
}

// causeOf is an error without the address, which url.Error repeats.
func causeOf(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// maxRetryAfter bounds what is believed of a server's wish.
const maxRetryAfter = 24 * time.Hour

// RetryAfter reads Retry-After: seconds, or a date, which is compared with the
// server's own Date so that no clocks need agree. 0 when it says nothing usable.
func RetryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s >= 0 && !math.IsInf(s, 0) {
		return time.Duration(min(s, maxRetryAfter.Seconds()) * float64(time.Second))
	}
	until, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return min(max(until.Sub(now), 0), maxRetryAfter)
}
