package rest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/protocol/fault"
)

// WriteError writes the error envelope (OpenWOP host contract §9.1). An error without a code
// is logged and replaced by an id.
func WriteError(w http.ResponseWriter, log *slog.Logger, err error) {
	e := asFault(log, err)
	row := e.Row()
	status := row.HTTP
	if status == 0 { // a code for errors of runs, unexpected here
		status = http.StatusInternalServerError
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	delete(h, etagHeader)
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(rpc.RetryAfterSeconds(e.RetryAfter)))
		e = e.With("retryAfter", rpc.RetryAfterSeconds(e.RetryAfter))
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(status)
	_, _ = w.Write(e.Envelope()) // the client may have gone
}

func asFault(log *slog.Logger, err error) *fault.Error {
	if e, ok := fault.As(err); ok {
		return e
	}
	if e, ok := fault.As(rpc.FromStatus(err)); ok {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(rpc.FromStatus(err), context.DeadlineExceeded) {
		return fault.New(fault.ServiceUnavailable, "the host did not answer in time; retry").After(retryCapacity)
	}
	e, id := rpc.Internal(err)
	if !errors.Is(err, context.Canceled) && !errors.Is(rpc.FromStatus(err), context.Canceled) {
		log.Error("request failed", "correlation_id", id, "error", err)
	}
	return e
}
