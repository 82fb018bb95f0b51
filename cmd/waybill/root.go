package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/version"
)

// errUsage marks errors of the command line.
var errUsage = errors.New("usage")

// root is the command tree.
func root(stdout, stderr io.Writer) *cobra.Command {
	c := &cobra.Command{
		Use:   "waybill",
		Short: "Waybill is a host for OpenWOP: it runs LLM workflows and records every model answer as a checked envelope",
		Example: `  waybill dev            # the whole host in one process
  waybill dev --demo     # and one real run, printed`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.Version,
	}
	c.SetOut(stdout)
	c.SetErr(stderr)
	c.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: %w (see %s --help)", errUsage, err, cmd.CommandPath())
	})
	c.AddCommand(devCommand(), serveCommand(), envelopeCommand(), schemaCommand(), workflowCommand(), modelCommand())
	return c
}
