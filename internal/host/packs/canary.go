package packs

import (
	"crypto/rand"
	"os"

	"waybill.dev/waybill/services/redactor/redact"
)

// CanaryValue is the value of that secret: the test suite's, if it sets one that is long enough.
func CanaryValue() string {
	if v := os.Getenv("OPENWOP_CANARY_SECRET_VALUE"); len(v) >= redact.MinLength {
		return v
	}
	return "canary-" + rand.Text()
}

// CanarySecret is the id of the secret that the protocol's test suite plants and searches for.
const CanarySecret = "openwop-conformance-canary-secret"
