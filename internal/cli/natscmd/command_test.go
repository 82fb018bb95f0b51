package natscmd

import (
	"testing"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/clitest"
)

// command runs a command of this package.
func command(t *testing.T, stdin string, args ...string) (stdout string, err error) {
	t.Helper()
	c := &cobra.Command{Use: "nats"}
	c.AddCommand(Creds(), Consumer())
	return clitest.Run(t, c, stdin, args...)
}
