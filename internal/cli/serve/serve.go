// Package serve has the commands that run one service in a process of its own. Their flags are in
// internal/cli/hostflags, what they run is in internal/host.
package serve

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/hostflags"
	"waybill.dev/waybill/internal/config"
	"waybill.dev/waybill/internal/obs"
)

// Command runs one service in a process of its own.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run one service in a process of its own",
		Long: `Runs one service in its own process, to use that service alone or to distribute a
host over several machines. All five services on one NATS cluster, each with as many
replicas as needed, form a whole host.`,
	}
	for _, p := range Programs() {
		c.AddCommand(p.Command)
	}
	return c
}

// Programs are its commands.
func Programs() []hostflags.Program {
	return []hostflags.Program{gatewayCommand(), acceptorCommand(), dispatcherCommand(), eventLogCommand(), redactorCommand()}
}

// prepare reads the settings from all their places, checks them and opens the log.
func prepare(cmd *cobra.Command, o *hostflags.Log, validate func() error) (*slog.Logger, error) {
	if err := config.Load(cmd.Flags(), os.LookupEnv); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	if err := validate(); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	log, err := obs.NewLogger(cmd.ErrOrStderr(), o.Level, o.Format)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	return log, nil
}
