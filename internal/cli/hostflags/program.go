package hostflags

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/obs"
)

// Program is a command that runs services until it is stopped. Its flags can be set in the file of
// --config.
type Program struct {
	*cobra.Command

	// Check returns all errors in the values of the flags, joined. It reads neither files nor variables.
	Check func() error
}

// Check returns the error in the settings.
func (o *Log) Check() error {
	_, err := obs.NewLogger(io.Discard, o.Level, o.Format)
	return err
}

// Checked makes a program that checks its log, too.
func Checked(c *cobra.Command, log *Log, check func() error) Program {
	return Program{c, func() error { return errors.Join(check(), log.Check()) }}
}
