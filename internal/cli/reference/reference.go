// Package reference has the hidden command that writes reference pages of all commands.
package reference

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"waybill.dev/waybill/internal/cli/editorschema"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/version"
)

// Command is `waybill reference`, used to build docs and packages.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use:    "reference",
		Short:  "Write the reference of all commands",
		Hidden: true,
	}
	c.AddCommand(&cobra.Command{
		Use:     "man DIR",
		Short:   "Write a man page per command to a directory",
		Example: `  waybill reference man /usr/local/share/man/man1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // G301: man pages are public
				return exit.With(exit.Usage, err)
			}
			epoch := time.Unix(0, 0).UTC() // reproducible builds
			return doc.GenManTree(cmd.Root(), &doc.GenManHeader{
				Section: "1",
				Source:  version.Name + " " + version.Version,
				Manual:  "Waybill",
				Date:    &epoch,
			}, args[0])
		},
	}, &cobra.Command{
		Use:   "markdown",
		Short: "Write the page of docs/reference/cli.md to standard output",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return reference(cmd.OutOrStdout(), cmd.Root())
		},
	})
	c.AddCommand(editorschema.References()...)
	return c
}

const referenceHead = `# Commands

Every command with its flags, as in ` + "`waybill COMMAND --help`" + `. Flags of a group of commands apply to
all its commands. Generated from the commands by ` + "`make gen`" + `; do not edit.
`

// reference writes one page of all commands.
func reference(w io.Writer, root *cobra.Command) error {
	if _, err := io.WriteString(w, referenceHead); err != nil {
		return err
	}
	return pageOf(w, root)
}

func pageOf(w io.Writer, c *cobra.Command) error {
	if c.Hidden || c.IsAdditionalHelpTopicCommand() || c.Name() == "help" || c.Name() == "completion" {
		return nil
	}
	var b strings.Builder
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(&b, "\n## %s\n\n%s\n\n```text\n%s\n```\n", c.CommandPath(), strings.TrimSpace(text), c.UseLine())
	if c.Example != "" {
		fmt.Fprintf(&b, "\n```text\n%s\n```\n", c.Example)
	}
	if flags := c.NonInheritedFlags().FlagUsages(); c.NonInheritedFlags().HasAvailableFlags() {
		fmt.Fprintf(&b, "\n```text\n%s```\n", flags)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if err := pageOf(w, sub); err != nil {
			return err
		}
	}
	return nil
}
