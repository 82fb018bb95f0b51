package outbound

import (
	"net/http"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// NewDeniedError returns the error of a call that was refused for where it came from, and not for its key; nil if
// it was not. Another key does not help, and neither does another attempt.
func NewDeniedError(status int, body ErrorBody) *provider.Error {
	if status != http.StatusForbidden && status != http.StatusUnavailableForLegalReasons {
		return nil
	}
	e := &provider.Error{Code: provider.CodeUnavailable}
	switch {
	case body.IsRegion():
		e.Message = "the model's server does not serve the country or region of this host"
	case body.IsNetwork():
		e.Message = "a network rule refused the call, at the model's server or in front of it: check its firewall and the addresses that it allows"
	default:
		return nil
	}
	return e
}
