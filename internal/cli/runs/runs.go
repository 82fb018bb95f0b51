// Package runs has the commands that start, show, follow and control runs.
package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/protocol/wire"
)

// Command is `waybill run`.
func Command(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Start, show, follow and control runs",
		Long: `Starts, shows, follows and controls runs. RUN is a run id, or @latest for the newest run of the
tenant.

` + exit.Help,
		Example: `  waybill run start triage --input @mail.json --wait
  waybill run list --filter 'status:failed since:2h'
  waybill run watch @latest`,
	}
	s.Flags(c)
	c.AddCommand(startCommand(s), listCommand(s), getCommand(s), watchCommand(s), waitCommand(s), eventsCommand(s),
		cancelCommand(s), pauseCommand(s), resumeCommand(s), forkCommand(s), diffCommand(s), exportCommand(s), verifyCommand(s),
		ownerCommand(s), quarantineCommand(s), deleteCommand(s), holdCommand(s), archiveCommand(s), importCommand(s))
	return c
}

// latest is the argument for the newest run.
const latest = "@latest"

// one has what a command about one run needs.
type one struct {
	client *client.Client
	print  *render.Printer
	id     string
}

// about returns the client, the printer and the id for a command about one run.
func about(cmd *cobra.Command, s *session.Session, id string) (*one, error) {
	p, err := s.Printer(cmd)
	if err != nil {
		return nil, err
	}
	c, err := s.Client(cmd)
	if err != nil {
		return nil, err
	}
	id, err = Named(cmd.Context(), c, id)
	return &one{client: c, print: p, id: id}, err
}

// Named returns the id of a run argument: an id or @latest.
func Named(ctx context.Context, c *client.Client, name string) (string, error) {
	switch name {
	case latest:
		r, err := c.Latest(ctx)
		if _, ok := errors.AsType[*client.UnofferedError](err); ok {
			return "", fmt.Errorf("%w: give the id of the run instead of %s", err, latest)
		}
		if err != nil {
			return "", err
		}
		return r.RunID, nil
	case "":
		return "", exit.Usagef("the run id is empty")
	default:
		return name, nil
	}
}

// CompleteIDs completes the first argument with the newest runs.
func CompleteIDs(s *session.Session) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return newest(cmd, s, nil), cobra.ShellCompDirectiveNoFileComp
	}
}

// newest lists runs for completion; none if the host is unreachable.
func newest(cmd *cobra.Command, s *session.Session, but []string) []string {
	out := []string{latest + "\tthe newest run"}
	c, err := s.Client(cmd)
	if err != nil {
		return out
	}
	page, err := c.Runs(cmd.Context(), client.RunQuery{Limit: 50})
	if err != nil {
		return out
	}
	for _, r := range page.Runs {
		if !slices.Contains(but, r.RunID) {
			out = append(out, r.RunID+"\t"+string(r.Status)+" "+r.WorkflowID)
		}
	}
	return out
}

// consoleOf returns the console URL of a run; empty if the host has no console.
func consoleOf(ctx context.Context, c *client.Client, runID string) string {
	if _, err := c.Get(ctx, "/console/config.json"); err != nil {
		return ""
	}
	return c.Base() + "/console/runs/" + url.PathEscape(runID)
}

// link prints the console URL of a run.
func link(cmd *cobra.Command, c *client.Client, runID string) {
	if at := consoleOf(cmd.Context(), c, runID); at != "" {
		session.Notice(cmd, "console: %s", at)
	}
}

// outcome returns the exit status for the status of a run.
func outcome(status wire.Status) error {
	switch {
	case status == wire.StatusFailed || status == wire.StatusCancelled:
		return exit.Outcome(exit.Failed, "the run "+string(status))
	case status.Waiting():
		return exit.Outcome(exit.Waiting, "the run waits")
	default:
		return nil
	}
}

// maxInput is the maximum size of the input of a run. The limit of hosts is lower.
const maxInput = 64 << 20

// object reads a JSON object from the flag, @FILE, or - for standard input.
func object(stdin io.Reader, name, text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	b, err := Read(stdin, name, text)
	if err != nil {
		return nil, err
	}
	var v map[string]json.RawMessage
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, exit.Usagef("%s: want a JSON object, @FILE or -: %w", name, err)
	}
	return b, nil
}

// Read returns a value given as text, as a file (@FILE), or on standard input (-).
func Read(stdin io.Reader, name, text string) ([]byte, error) {
	path, isFile := strings.CutPrefix(text, "@")
	if !isFile && text != "-" {
		return []byte(text), nil
	}
	from := stdin
	if isFile {
		f, err := os.Open(path) //nolint:gosec // G304: the user names the file
		if err != nil {
			return nil, exit.Usagef("%s: %w", name, err)
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	b, err := io.ReadAll(io.LimitReader(from, maxInput+1))
	if err == nil && len(b) > maxInput {
		err = errors.New("too large")
	}
	if err != nil {
		return nil, exit.Usagef("%s: %w", name, err)
	}
	return b, nil
}
