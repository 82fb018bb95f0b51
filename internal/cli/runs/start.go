package runs

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
)

// startFlags are the flags of `run start`.
type startFlags struct {
	input, configurable, metadata, key string
	set, tags                          []string
	wait, watch                        bool
}

func startCommand(s *session.Session) *cobra.Command {
	var o startFlags
	c := &cobra.Command{
		Use:   "start WORKFLOW",
		Short: "Start a run",
		Long: `Starts a run of a workflow. The inputs are a JSON object (--input), single values (--set), or
both; --set overrides members of --input.

Every start has an idempotency key, random unless set with --key. Repeating a request with the same
key returns the same run.

With --wait, waits until the run ends or waits for an answer, and prints it. ` + exit.Help,
		Example: `  waybill run start triage --set mail='I was charged twice.'
  waybill run start triage --input @mail.json --wait -o json | jq .status
  cat order.json | waybill run start order --input - --watch`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeWorkflows(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			return start(cmd, s, args[0], o)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.input, "input", "i", "", "inputs: JSON object, @FILE, or - for standard input")
	f.StringArrayVar(&o.set, "set", nil, "NAME=VALUE, one input, as JSON or text (repeatable)")
	f.StringArrayVar(&o.tags, "tag", nil, "tag of the run (repeatable)")
	f.StringVar(&o.configurable, "configurable", "", "options of the run: JSON object or @FILE")
	f.StringVar(&o.metadata, "metadata", "", "metadata of the run: JSON object or @FILE")
	f.StringVar(&o.key, "key", "", "Idempotency-Key; repeats with the same key start one run")
	f.BoolVar(&o.wait, "wait", false, "wait until the run ends or waits for an answer")
	f.BoolVar(&o.watch, "watch", false, "follow the run to its end, as waybill run watch does, and print its outputs")
	c.MarkFlagsMutuallyExclusive("wait", "watch")
	return c
}

func start(cmd *cobra.Command, s *session.Session, workflow string, o startFlags) error {
	p, err := s.Printer(cmd)
	if err != nil {
		return err
	}
	r := client.StartRun{WorkflowID: workflow, Tags: o.tags, Key: o.key}
	if r.Key == "" {
		r.Key = uuid.NewString()
	}
	if r.Inputs, err = Inputs(cmd.InOrStdin(), o.input, o.set); err != nil {
		return err
	}
	if r.Configurable, err = object(cmd.InOrStdin(), "--configurable", o.configurable); err != nil {
		return err
	}
	if r.Metadata, err = object(cmd.InOrStdin(), "--metadata", o.metadata); err != nil {
		return err
	}
	c, err := s.Client(cmd)
	if err != nil {
		return err
	}
	began, err := c.Start(cmd.Context(), r)
	if err != nil {
		return err
	}
	at := &one{client: c, print: p, id: began.RunID}
	if began.Replayed {
		session.Notice(cmd, "replayed: %s was started with this key before", began.RunID)
	} else {
		session.Notice(cmd, "started %s (key %s)", began.RunID, r.Key)
	}
	link(cmd, c, began.RunID)
	switch {
	case o.watch:
		return at.watch(cmd, s, watchFlags{})
	case o.wait:
		return at.wait(cmd, s, true)
	}
	return at.printStarted(began)
}

// printStarted prints a new run.
func (o *one) printStarted(r *client.Started) error {
	return o.print.Document(r.Doc, r.RunID, func(w io.Writer) error {
		return render.Pairs(w, "run", r.RunID, "status", string(r.Status), "source", r.SourceRunID, "mode", r.Mode)
	})
}

// Inputs merges single values into an object.
func Inputs(stdin io.Reader, text string, set []string) (json.RawMessage, error) {
	doc, err := object(stdin, "--input", text)
	if err != nil || len(set) == 0 {
		return doc, err
	}
	all := map[string]json.RawMessage{}
	if doc != nil {
		if err := json.Unmarshal(doc, &all); err != nil {
			return nil, err
		}
	}
	for _, pair := range set {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, exit.Usagef("--set %q: must be NAME=VALUE", pair)
		}
		if all[name], err = Value(value); err != nil {
			return nil, err
		}
	}
	return render.Encode(all)
}

// Value returns the text if it is JSON, else the text as a JSON string.
func Value(text string) (json.RawMessage, error) {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	b, err := render.Encode(text)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return b, nil
}

// completeWorkflows completes the first argument with the host's workflows.
func completeWorkflows(s *session.Session) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := s.Client(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		page, err := c.Workflows(cmd.Context(), 200, "")
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, w := range page.Workflows {
			out = append(out, w.WorkflowID+"\t"+w.Name)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
