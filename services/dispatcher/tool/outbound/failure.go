package outbound

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// Peer describes the callee in errors.
type Peer struct {
	// Name is its name, such as MCP server "files".
	Name string
	// TokenName is the variable with its token; empty without a token.
	TokenName string
}

// Failure returns the node error of a failed call. It never repeats text of the peer.
func (p Peer) Failure(err error, n *Note) *wire.NodeError {
	unavailable := func(what string) *wire.NodeError {
		return &wire.NodeError{Code: string(fault.ServiceUnavailable), Message: p.Name + " " + what, Retryable: true}
	}
	status, isStatus := errors.AsType[*StatusError](err)
	switch {
	case errors.Is(err, ErrTooLarge) || n.TooLarge():
		return &wire.NodeError{
			Code:    string(fault.ContentTooLong),
			Message: p.Name + " answered with more than this host takes; ask for less",
		}
	case errors.Is(err, ErrOtherHost):
		return &wire.NodeError{
			Code:    string(fault.CapabilityNotProvided),
			Message: p.Name + " points to another address than the operator has named; name that one, if it is meant",
		}
	case isStatus:
		return p.refused(status)
	case errors.Is(err, context.DeadlineExceeded):
		return unavailable("did not answer in time")
	case n.Status() >= http.StatusBadRequest:
		return unavailable(fmt.Sprintf("answered with status %d", n.Status()))
	case n.Status() >= http.StatusOK && !errors.Is(err, context.Canceled):
		return unavailable("answered with a message that is not valid: it is cut off, no JSON-RPC, or no result of the method")
	default:
		return unavailable("could not be asked")
	}
}

func (p Peer) refused(e *StatusError) *wire.NodeError {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return &wire.NodeError{
			Code:    string(fault.CredentialRequired),
			Message: fmt.Sprintf("%s answered with status %d; set %s to a token that it takes", p.Name, e.Status, p.TokenName),
		}
	default:
		return &wire.NodeError{
			Code: string(fault.ServiceUnavailable), Message: fmt.Sprintf("%s answered with status %d", p.Name, e.Status),
			Retryable: true, RetryAfter: e.RetryAfter,
		}
	}
}
