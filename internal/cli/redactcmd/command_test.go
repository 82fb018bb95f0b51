package redactcmd

import (
	"testing"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/cli/session"
)

// command runs `waybill redact`.
func command(t *testing.T, stdin string, args ...string) (stdout string, err error) {
	t.Helper()
	return clitest.Run(t, Command(session.New()), stdin, args...)
}
