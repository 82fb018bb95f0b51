package lint

import (
	"testing"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/cli/session"
)

// command runs a command of this package.
func command(t *testing.T, stdin string, args ...string) (stdout string, err error) {
	t.Helper()
	c := Schema(session.New())
	if args[0] == "workflow" {
		c = &cobra.Command{Use: "workflow"}
		c.AddCommand(Workflow(session.New()))
	}
	return clitest.Run(t, c, stdin, args...)
}
