package rpc

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"waybill.dev/waybill/protocol/fault"
)

// envelopeType marks the only detail of a status: the UTF-8 JSON of the error envelope, not a
// packed message (OpenWOP host contract §9.4).
const envelopeType = "openwop.dev/spec/v1/ErrorEnvelope"

// ToStatus converts a fault to the gRPC status of the protocol's profile. Within the process it is
// not masked, because the redactor processes it before it is shown.
func ToStatus(e *fault.Error, within bool) error {
	return statusOf(codes.Code(e.Row().GRPC), e, within) //nolint:gosec // G115: the table holds codes 3..16
}

func statusOf(code codes.Code, e *fault.Error, within bool) error {
	if e.RetryAfter > 0 {
		e = e.With(retryAfterDetail, RetryAfterSeconds(e.RetryAfter))
	}
	if !within {
		e = e.Masked()
	}
	return status.FromProto(&spb.Status{
		Code:    int32(code), //nolint:gosec // G115: 0..16
		Message: e.Message,
		Details: []*anypb.Any{{TypeUrl: envelopeType, Value: e.Internal()}},
	}).Err()
}

// retryAfterDetail is the member of an envelope's details that repeats the Retry-After header, in
// seconds.
const retryAfterDetail = "retryAfter"

// RetryAfterSeconds rounds a wait up to whole seconds.
func RetryAfterSeconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// FromStatus converts a status to a fault. io.EOF and nil pass unchanged; a status without an
// envelope becomes the fault for its gRPC code.
func FromStatus(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	if _, ok := fault.As(err); ok {
		return err
	}
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, d := range st.Proto().GetDetails() {
		if d.GetTypeUrl() != envelopeType {
			continue
		}
		if e, perr := fault.ParseEnvelope(d.GetValue()); perr == nil {
			if s, ok := e.Details[retryAfterDetail].(float64); ok {
				e.RetryAfter = time.Duration(s * float64(time.Second))
			}
			return e
		}
	}
	return bareStatus(st)
}

// bareStatus converts a status created by the transport.
func bareStatus(st *status.Status) error {
	switch st.Code() {
	case codes.Canceled:
		return context.Canceled
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	case codes.Unavailable:
		return fault.New(fault.ServiceUnavailable, "a service of this host cannot be reached; try again").
			After(time.Second).Wrap(st.Err())
	case codes.ResourceExhausted:
		return fault.New(fault.PayloadTooLarge, "the message is larger than services of this host exchange").Wrap(st.Err())
	case codes.Unimplemented:
		return fault.New(fault.NotFound, "this host does not serve the method").Wrap(st.Err())
	default:
		return st.Err()
	}
}

func contextStatus(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return status.Error(codes.DeadlineExceeded, "deadline exceeded")
	}
	return status.Error(codes.Canceled, "cancelled by the caller")
}

// internalError returns a neutral error without details, and the id under which the cause is
// logged.
func internalError() (*fault.Error, string) {
	var b [8]byte
	_, _ = rand.Read(b[:])
	id := hex.EncodeToString(b[:])
	return fault.New(fault.InternalError, "something failed inside the host; quote details.correlationId to its operator").
		With("correlationId", id), id
}

// Internal hides err behind a neutral internal_error fault with a new id. The id is returned for
// the log line.
func Internal(err error) (*fault.Error, string) {
	e, id := internalError()
	return e.Wrap(err), id
}
