package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/protocol/fault"
)

// An invalid command line exits with 2, wherever it is detected, and names the help.
func TestExecute_RefusesAWrongCommandLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"ghost":                          `waybill has no command "ghost"; waybill help lists its commands`,
		"run xyzzy":                      `waybill run has no command "xyzzy"; its commands are archive, cancel, delete`,
		"run show":                       `waybill run has no command "show"; did you mean get?`,
		"run watc":                       `waybill run has no command "watc"; did you mean wait or watch?`,
		"run get":                        "error: usage: want waybill run get RUN; got 0 argument(s) (see waybill run get --help)",
		"run list extra":                 "want waybill run list; got 1 argument(s)",
		"help ghost":                     `no help on "ghost"`,
		"help run ghost":                 `no help on "run ghost"`,
		"completion ghost":               `waybill completion has no command "ghost"`,
		"run list --ghost":               "unknown flag: --ghost",
		"run start w --wait --watch":     "wait watch",
		"run list -o xml":                `--output "xml": want table, wide, json, jsonl, yaml, name`,
		"interrupt answer r":             "set --action, --answer, --decline or --value; waybill interrupt show r shows which",
		"context set x --url nowhere":    `--url: "nowhere" is not a valid host URL`,
		"run export r --what everything": `--what "everything"`,
		"envelope accept x.json":         "required flag",
	} {
		var out, errs bytes.Buffer
		c := root(&out, &errs)
		c.SetArgs(strings.Fields(line))
		status := execute(t.Context(), c)
		require.Equal(t, exit.Usage, status, "%s: %s", line, errs.String())
		require.Contains(t, errs.String(), want, line)
		require.Empty(t, out.String(), line)
	}
}

// Help is there for each command and each topic.
func TestHelp_OfEachCommand(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"help", "help topics", "help exit-status", "help run", "help run list", "help envelope explain", "completion"} {
		var out, errs bytes.Buffer
		c := root(&out, &errs)
		c.SetArgs(strings.Fields(line))
		require.Equal(t, exit.Done, execute(t.Context(), c), line)
		require.NotEmpty(t, out.String(), line)
	}
}

// Each command that an error recommends exists.
func TestNextSteps_NameCommandsThatExist(t *testing.T) {
	t.Parallel()
	named, placeholder := regexp.MustCompile("`waybill ([^`]*)`"), regexp.MustCompile(`^[A-Z]+$`)
	seen := 0
	for _, code := range fault.Codes() {
		for _, m := range named.FindAllStringSubmatch(fault.Lookup(code).Next, -1) {
			seen++
			var out, errs bytes.Buffer
			c := root(&out, &errs)
			cmd, args, err := c.Find(strings.Fields(m[1]))
			require.NoError(t, err, "%s: %s", code, m[0])
			require.False(t, cmd.HasSubCommands() && len(args) > 0, "%s: %s", code, m[0])
			require.NoError(t, cmd.ParseFlags(args), "%s: %s", code, m[0])
			if cmd.Flags().NArg() == 0 { // a command is named, and no call of it
				continue
			}
			require.NoError(t, cmd.ValidateArgs(cmd.Flags().Args()), "%s: %s", code, m[0])
			for _, arg := range cmd.Flags().Args() {
				require.Regexp(t, placeholder, arg, "%s: %s", code, m[0])
			}
		}
	}
	require.Greater(t, seen, 5)
}
