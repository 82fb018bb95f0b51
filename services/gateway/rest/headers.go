package rest

import (
	"net/http"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/idempotency"
)

// Request headers that change what a request does. The translation to gRPC drops values that
// are not printable ASCII, so they are checked before: a dropped Idempotency-Key would
// execute a repeated request twice. Traceparent is not among them: a malformed one is
// ignored (OpenWOP host contract §2.0).
var (
	changeHeaders = []string{"Idempotency-Key", "X-Dedup", "X-Force-Engine-Version", "Waybill-Interrupt-Id"}
	readHeaders   = []string{"Last-Event-Id"}
)

// timeoutHeader would be understood by the translation. It is not part of this API.
const timeoutHeader = "Grpc-Timeout"

// checkHeaders validates the headers of a request that has a route. Reads ignore the headers
// of changes (OpenWOP host contract §2.1).
func checkHeaders(r *http.Request) error {
	r.Header.Del(timeoutHeader)
	names := changeHeaders
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		names = readHeaders
	}
	for _, name := range names {
		if err := checkHeader(name, r.Header[name]); err != nil {
			return err
		}
	}
	return nil
}

// checkHeader validates the values of a header.
func checkHeader(name string, values []string) error {
	if len(values) > 1 {
		return fault.InvalidHeader(name, "the header is there %d times; send it once", len(values))
	}
	for _, v := range values {
		if len(v) > idempotency.MaxKeyLength {
			return fault.InvalidHeader(name, "want at most %d characters, got %d", idempotency.MaxKeyLength, len(v))
		}
		for i := range len(v) {
			if v[i] < ' ' || v[i] > '~' {
				return fault.InvalidHeader(name, "want printable ASCII; character %d is not", i+1)
			}
		}
	}
	return nil
}
