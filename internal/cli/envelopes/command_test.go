package envelopes

import (
	"testing"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/cli/session"
)

// command runs a command of this package.
func command(t *testing.T, stdin string, args ...string) (stdout string, err error) {
	t.Helper()
	c := &cobra.Command{Use: "envelope"}
	c.AddCommand(Validate(session.New()), Accept())
	return clitest.Run(t, c, stdin, args...)
}
