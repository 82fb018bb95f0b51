package runlog

import (
	"errors"

	"waybill.dev/waybill/protocol/fault"
)

// IsPermanent reports that an append fails however often it is retried: the frame exceeds a limit of
// the log or of the redactor, or the redactor cannot parse one of its documents, for example because
// of its nesting depth. The redactor names the violated rule in the error's details.
func IsPermanent(err error) bool {
	if _, large := errors.AsType[*TooLargeError](err); large {
		return true
	}
	f, ok := fault.As(err)
	return ok && (f.Code == fault.PayloadTooLarge || f.Code == fault.ValidationError && f.Details["rule"] != nil)
}
