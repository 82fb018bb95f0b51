package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/backupcmd"
	"waybill.dev/waybill/internal/cli/capabilities"
	"waybill.dev/waybill/internal/cli/conformance"
	"waybill.dev/waybill/internal/cli/contextcmd"
	"waybill.dev/waybill/internal/cli/dev"
	"waybill.dev/waybill/internal/cli/doctor"
	"waybill.dev/waybill/internal/cli/editorschema"
	"waybill.dev/waybill/internal/cli/envelopes"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/hostlog"
	"waybill.dev/waybill/internal/cli/interrupts"
	"waybill.dev/waybill/internal/cli/learn"
	"waybill.dev/waybill/internal/cli/lint"
	"waybill.dev/waybill/internal/cli/model"
	"waybill.dev/waybill/internal/cli/natscmd"
	"waybill.dev/waybill/internal/cli/providers"
	"waybill.dev/waybill/internal/cli/redactcmd"
	"waybill.dev/waybill/internal/cli/reference"
	"waybill.dev/waybill/internal/cli/runs"
	"waybill.dev/waybill/internal/cli/scaffold"
	"waybill.dev/waybill/internal/cli/serve"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/stats"
	"waybill.dev/waybill/internal/cli/tenantcmd"
	"waybill.dev/waybill/internal/cli/webhooks"
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
checked envelope. ` + "`waybill dev`" + ` starts one here; the other commands call it, or any other host.

` + exit.Help,
		Example: `  waybill dev                                  # the whole host in one process
  waybill run start triage --set mail='Hello' --wait
  waybill envelope explain @latest             # why was an answer rejected?
  waybill cheat                                # more examples`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.Version,
	}
	c.SetOut(stdout)
	c.SetErr(stderr)
	c.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.Usagef("%w (see %s --help)", err, cmd.CommandPath())
	})
	s := session.New()
	c.AddGroup(&cobra.Group{ID: groupHost, Title: "Host:"}, &cobra.Group{ID: groupRuns, Title: "Runs:"},
		&cobra.Group{ID: groupFiles, Title: "Definitions and files:"}, &cobra.Group{ID: groupHelp, Title: "Help:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, one := range commands {
			one.GroupID = group
			c.AddCommand(one)
		}
	}
	add(groupHost, dev.Command(), serve.Command(), group("nats", "Give clients read access to events over NATS", natscmd.Creds(), natscmd.Consumer()), hostlog.Command(s), backupcmd.Backup(), backupcmd.Restore(), doctor.Command(s),
		group("provider", "Test the providers of models", providers.Test(s)), contextcmd.Command(s), capabilities.Command(s), conformance.Command(s))
	add(groupRuns, runs.Command(s), interrupts.Command(s), stats.Command(s), webhooks.Command(s),
		group("tenant", "Erase the key's tenant", tenantcmd.Erase(s)),
		group("envelope", "Explain, validate and submit envelopes", envelopes.Explain(s), envelopes.Validate(s), envelopes.Accept()))
	add(groupFiles,
		scaffold.Init(),
		group("workflow", "Write, check, register and compare workflow definitions", scaffold.Workflow(), lint.Workflow(s), workflowlist.List(s),
			workflowlist.Get(s), workflowlist.Versions(s), workflowlist.Diff(s), workflowlist.Register(s), workflowlist.Delete(s)),
		group("kind", "Write and list envelope kinds", scaffold.Kind(), capabilities.Kinds(s)), schemas(s), lint.Settings(s), model.Command(s), redactcmd.Command(s))
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

// schemas is the group of commands for JSON Schemas.
func schemas(s *session.Session) *cobra.Command {
	c := lint.Schema(s)
	c.AddCommand(editorschema.Show())
	return c
}

// group returns a command that only has subcommands.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short}
	c.AddCommand(commands...)
	return c
}

// strict makes groups of commands reject unknown subcommands.
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
	for _, sub := range c.Commands() {
		sub.SuggestFor = alsoKnownAs[sub.Name()]
	}
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		hint := "; waybill help lists its commands"
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "; did you mean " + strings.Join(near, " or ") + "?"
		} else if cmd.HasParent() {
			hint = "; its commands are " + strings.Join(names(cmd), ", ")
		}
		return exit.Usagef("%s has no command %q%s", cmd.CommandPath(), args[0], hint)
	}
}

// alsoKnownAs are names that other programs give to a command.
var alsoKnownAs = map[string][]string{
	"get":    {"show", "describe", "inspect", "status", "view"},
	"list":   {"ls"},
	"delete": {"rm", "remove", "erase", "purge"},
	"erase":  {"rm", "remove", "delete", "purge"},
	"start":  {"create", "execute", "run", "submit"},
	"new":    {"create", "add"},
	"watch":  {"follow", "tail", "logs"},
	"events": {"log", "history"},
	"cancel": {"kill", "stop", "terminate", "abort"},
	"lint":   {"check", "validate"},
	"show":   {"get", "describe"},
	"answer": {"approve", "respond", "resolve"},
	"dev":    {"up", "start", "run-dev"},
}

// names lists the commands of a group.
func names(group *cobra.Command) (out []string) {
	for _, sub := range group.Commands() {
		if sub.IsAvailableCommand() {
			out = append(out, sub.Name())
		}
	}
	return out
}

// help prints the help of a command or topic, and rejects unknown names.
func help(cmd *cobra.Command, args []string) error {
	about, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 && about.HasSubCommands() {
		return exit.Usagef("no help on %q; waybill help topics lists the topics", strings.Join(args, " "))
	}
	return about.Help()
}

// counted adds the usage of the command to the error for a wrong number of arguments.
func counted(check cobra.PositionalArgs) cobra.PositionalArgs {
	if check == nil {
		return nil
	}
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("want %s; got %d argument(s)", strings.TrimSuffix(cmd.UseLine(), " [flags]"), len(args))
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
		err = exit.Usagef("%w (see %s --help)", err, cmd.CommandPath()) // wrong arguments, or missing flags
	}
	exit.Report(c.ErrOrStderr(), err, session.WantsJSON(cmd))
	return exit.Status(err)
}

// started sets began when a command starts. Errors before that are usage errors.
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
