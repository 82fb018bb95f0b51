package lint

import (
	"regexp"
	"testing"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/cli/session"
)

// place is the place of a finding, which most tests leave out.
var place = regexp.MustCompile(`(?m)^(\S*?):[0-9]+:[0-9]+: `)

// command runs a command of this package. Lines of its report have no place.
func command(t *testing.T, stdin string, args ...string) (stdout string, err error) {
	t.Helper()
	c := Schema(session.New())
	if args[0] == "workflow" {
		c = &cobra.Command{Use: "workflow"}
		c.AddCommand(Workflow(session.New()))
	}
	stdout, err = clitest.Run(t, c, stdin, args...)
	return place.ReplaceAllString(stdout, "$1: "), err
}
