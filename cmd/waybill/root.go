package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/capabilities"
	"waybill.dev/waybill/internal/cli/conformance"
	"waybill.dev/waybill/internal/cli/contextcmd"
	"waybill.dev/waybill/internal/cli/dev"
	"waybill.dev/waybill/internal/cli/doctor"
	"waybill.dev/waybill/internal/cli/envelopes"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/hostlog"
	"waybill.dev/waybill/internal/cli/interrupts"
	"waybill.dev/waybill/internal/cli/learn"
	"waybill.dev/waybill/internal/cli/lint"
	"waybill.dev/waybill/internal/cli/model"
	"waybill.dev/waybill/internal/cli/natscmd"
	"waybill.dev/waybill/internal/cli/redactcmd"
	"waybill.dev/waybill/internal/cli/reference"
	"waybill.dev/waybill/internal/cli/runs"
	"waybill.dev/waybill/internal/cli/serve"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/workflowlist"
	"waybill.dev/waybill/internal/version"
)

// The groups of commands, as help shows them.
const (
	groupHost  = "host"
	groupRuns  = "runs"
	groupFiles = "files"
	groupHelp  = "help"
)

// root is the command tree.
func root(stdout, stderr io.Writer) *cobra.Command {
	c := &cobra.Command{
		Use:   "waybill",
		Short: "Waybill is a host for OpenWOP: it runs LLM workflows and records every model answer as a checked envelope",
		Long: `Waybill is a host for OpenWOP: it runs LLM workflows and records every model answer as a
checked envelope. ` + "`waybill dev`" + ` starts one here; the other commands talk to it, or to any host.

` + exit.Help,
		Example: `  waybill dev                                  # the whole host in one process
  waybill run start triage --set mail='Hello' --wait
  waybill envelope explain @latest             # why was an answer refused?
  waybill cheat                                # more to copy`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.Version,
	}
	c.SetOut(stdout)
	c.SetErr(stderr)
	c.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: %w (see %s --help)", exit.ErrUsage, err, cmd.CommandPath())
	})
	s := session.New()
	c.AddGroup(&cobra.Group{ID: groupHost, Title: "A host:"}, &cobra.Group{ID: groupRuns, Title: "Runs:"},
		&cobra.Group{ID: groupFiles, Title: "What hosts are given:"}, &cobra.Group{ID: groupHelp, Title: "Help:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, one := range commands {
			one.GroupID = group
			c.AddCommand(one)
		}
	}
	add(groupHost, dev.Command(), serve.Command(), group("nats", "Let readers of events into your NATS server", natscmd.Creds(), natscmd.Consumer()), hostlog.Command(s), doctor.Command(s), contextcmd.Command(s), capabilities.Command(s), conformance.Command(s))
	add(groupRuns, runs.Command(s), interrupts.Command(s),
		group("envelope", "Explain envelopes, check them, hand them to an acceptor", envelopes.Explain(s), envelopes.Validate(s), envelopes.Accept()))
	add(groupFiles,
		group("workflow", "Check workflow definitions, and register them", lint.Workflow(s), workflowlist.List(s), workflowlist.Register(s)), lint.Schema(s), model.Command(s), redactcmd.Command(s))
	add(groupHelp, learn.Explain(s), learn.Cheat(s), learn.Version(s))
	c.SetHelpCommandGroupID(groupHelp)
	c.SetCompletionCommandGroupID(groupHelp)
	c.AddCommand(reference.Command())
	c.AddCommand(learn.Topics()...)
	c.InitDefaultHelpCmd()
	c.InitDefaultCompletionCmd()
	for _, one := range c.Commands() {
		if one.Name() == "completion" {
			for _, shell := range one.Commands() {
				shell.Example = "  waybill completion " + shell.Name()
			}
		}
	}
	strict(c)
	return c
}

// group is a command that only holds others.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short}
	c.AddCommand(commands...)
	return c
}

// strict makes a command that is not there an error of each group of commands.
func strict(c *cobra.Command) {
	for _, sub := range c.Commands() {
		strict(sub)
	}
	if c.Name() == "help" && c.Parent() == c.Root() {
		c.Run, c.RunE, c.Example = nil, help, "  waybill help run list\n  waybill help topics"
		return
	}
	c.Args = counted(c.Args)
	if c.Runnable() || !c.HasSubCommands() {
		return
	}
	c.SuggestionsMinimumDistance = 2
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		hint := ""
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "; did you mean " + strings.Join(near, " or ") + "?"
		}
		return fmt.Errorf("%w: %s has no command %q%s", exit.ErrUsage, cmd.CommandPath(), args[0], hint)
	}
}

// help shows the help of a command or a topic, and refuses a name that is neither.
func help(cmd *cobra.Command, args []string) error {
	about, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 && about.HasSubCommands() {
		return fmt.Errorf("%w: there is no help on %q; waybill help topics says what there is", exit.ErrUsage, strings.Join(args, " "))
	}
	return about.Help()
}

// counted gives the error of a wrong number of arguments the usage of the command.
func counted(check cobra.PositionalArgs) cobra.PositionalArgs {
	if check == nil {
		return nil
	}
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("want %s; it was given %d argument(s)", strings.TrimSuffix(cmd.UseLine(), " [flags]"), len(args))
		}
		return nil
	}
}

// execute runs a command line and returns the exit status.
func execute(ctx context.Context, c *cobra.Command) int {
	began := false
	started(c, &began)
	cmd, err := c.ExecuteContextC(ctx)
	if _, own := errors.AsType[*exit.Error](err); err != nil && !own && !began {
		err = fmt.Errorf("%w: %w (see %s --help)", exit.ErrUsage, err, cmd.CommandPath()) // arguments, or flags that are missing
	}
	exit.Report(c.ErrOrStderr(), err, session.WantsJSON(cmd))
	return exit.Status(err)
}

// started notes that a command has begun: what fails before is its command line.
func started(c *cobra.Command, began *bool) {
	for _, sub := range c.Commands() {
		started(sub, began)
	}
	if run := c.RunE; run != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			*began = true
			return run(cmd, args)
		}
	}
}
