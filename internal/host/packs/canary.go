package packs

import (
	"crypto/rand"
	"os"

	"waybill.dev/waybill/services/redactor/redact"
)

// CanaryValue is that of the secret which the test seams know: the suite's, if it says
// one that the redactor takes.
func CanaryValue() string {
	if v := os.Getenv("OPENWOP_CANARY_SECRET_VALUE"); len(v) >= redact.MinLength {
		return v
	}
	return "canary-" + rand.Text()
}

// CanarySecret is the secret that the protocol's suite plants and looks for.
const CanarySecret = "openwop-conformance-canary-secret"
