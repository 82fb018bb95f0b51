package learn

import (
	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/exit"
)

// Topics are the help pages that are not commands, such as `waybill help exit-status`.
func Topics() []*cobra.Command {
	return []*cobra.Command{
		{
			Use:   "exit-status",
			Short: "Exit statuses of commands",
			Long:  exit.Help,
		},
		{
			Use:   "environment",
			Short: "Environment variables of commands",
			Long: `WAYBILL_URL         URL of the host, with its base path
WAYBILL_TOKEN       credential
WAYBILL_TOKEN_FILE  file with the credential
WAYBILL_CA          PEM file of CAs for the host
WAYBILL_CONTEXT     context to use
XDG_CONFIG_HOME     directory of waybill/contexts.yaml; default ~/.config
NO_COLOR, TERM      no colors if NO_COLOR is set or TERM is dumb
COLUMNS             width of tables without a terminal
HTTP_PROXY, HTTPS_PROXY, NO_PROXY

Order of precedence: flag, environment, context, default. waybill context show --source prints the
source of each setting. For the variables of a host, see waybill dev --help.`,
		},
		{
			Use:   "topics",
			Short: "Help topics",
			Long: `waybill help COMMAND      description, flags and examples of a command
waybill help exit-status  exit statuses of commands
waybill help environment  environment variables of commands
waybill help output       output formats
waybill cheat TOPIC       command examples: contexts, envelopes, interrupts, runs, scripts
waybill explain NAME      meaning of an error code or event type`,
		},
		{
			Use:   "output",
			Short: "Output formats",
			Long: `-o table   table; --columns a,b selects columns
-o wide    table with more columns
-o json    one JSON document, as sent by the host
-o jsonl   one JSON document per line: rows, or live events
-o yaml    the same as json, as YAML
-o name    ids, one per line

Data is written to standard output, messages to standard error. With -o json or jsonl, an error is a
JSON document on standard error: error, message, details, hint, exit. --query takes a jq
expression, --template a Go template.`,
		},
	}
}
