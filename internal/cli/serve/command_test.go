package serve

import (
	"testing"

	"waybill.dev/waybill/internal/cli/clitest"
)

// command runs the command line of this package's command.
func command(t *testing.T, stdin string, args ...string) (stdout string, err error) {
	t.Helper()
	return clitest.Run(t, Command(), stdin, args...)
}
