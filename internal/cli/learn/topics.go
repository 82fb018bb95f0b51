package learn

import (
	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/exit"
)

// Topics are pages of help that are no commands: `waybill help exit-status`.
func Topics() []*cobra.Command {
	return []*cobra.Command{
		{
			Use:   "exit-status",
			Short: "What commands end with",
			Long:  exit.Help,
		},
		{
			Use:   "environment",
			Short: "Variables that commands look at",
			Long: `WAYBILL_URL         URL of the host, with its base path
WAYBILL_TOKEN       the credential
WAYBILL_TOKEN_FILE  file with the credential
WAYBILL_CA          file of PEM certificates that vouch for the host
WAYBILL_CONTEXT     context to use
XDG_CONFIG_HOME     where waybill/contexts.yaml is; else ~/.config
NO_COLOR, TERM      no colors if the one is set, or the other is dumb
COLUMNS             how wide tables may be where there is no terminal
HTTP_PROXY, HTTPS_PROXY, NO_PROXY

A flag beats the environment beats the context beats the default; waybill context show
--source says which holds. A host reads variables of its own: waybill dev --help.`,
		},
		{
			Use:   "topics",
			Short: "What there is to read here",
			Long: `waybill help COMMAND      what a command does, its options, and examples
waybill help exit-status  what commands end with
waybill help environment  variables that commands look at
waybill help output       forms that results are written in
waybill cheat TOPIC       commands to copy: contexts, envelopes, interrupts, runs, scripts
waybill explain NAME      what an error code or an event type means, and what to do`,
		},
		{
			Use:   "output",
			Short: "Forms that results are written in",
			Long: `-o table   for people; --columns a,b chooses columns
-o wide    with more columns
-o json    one document, as the host sent it
-o jsonl   one document a line: rows, or events while they happen
-o yaml    the same as json
-o name    ids, one a line

Data is on standard output, talk on standard error. With -o json, jsonl an error is a document
on standard error: error, message, details, hint, exit. --query takes a jq
expression, --template a template of Go.`,
		},
	}
}
