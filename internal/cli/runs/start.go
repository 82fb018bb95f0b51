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

// startFlags are those of `run start`, as they are given.
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
		Long: `Starts a run of a workflow. Its inputs are a JSON object (--input), single values (--set)
laid over it, or both.

A start has a key, made up unless --key names one: the same key and the same request give
the same run, and start no other.

With --wait, ends when the run does, or when it waits for somebody, and prints its
snapshot. ` + exit.Help,
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
	f.StringVarP(&o.input, "input", "i", "", "inputs: a JSON object, @FILE, or - for standard input")
	f.StringArrayVar(&o.set, "set", nil, "NAME=VALUE: one input; JSON, or else text (repeatable)")
	f.StringArrayVar(&o.tags, "tag", nil, "tag of the run (repeatable)")
	f.StringVar(&o.configurable, "configurable", "", "options of the run: a JSON object, or @FILE")
	f.StringVar(&o.metadata, "metadata", "", "metadata of the run: a JSON object, or @FILE")
	f.StringVar(&o.key, "key", "", "Idempotency-Key: the same key starts no second run")
	f.BoolVar(&o.wait, "wait", false, "wait for the end of the run, or until it waits for somebody")
	f.BoolVar(&o.watch, "watch", false, "follow the run to its end, as `run watch` does")
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
		session.Talk(cmd, "replayed: this key has started %s before; no new run", began.RunID)
	} else {
		session.Talk(cmd, "started %s (key %s)", began.RunID, r.Key)
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

// printStarted shows a run that was created.
func (o *one) printStarted(r *client.Started) error {
	return o.print.Document(r.Doc, r.RunID, func(w io.Writer) error {
		return render.Pairs(w, "run", r.RunID, "status", string(r.Status), "source", r.SourceRunID, "mode", r.Mode)
	})
}

// Inputs lays single values over an object.
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
			return nil, exit.Usagef("--set %q: want NAME=VALUE", pair)
		}
		if all[name], err = Value(value); err != nil {
			return nil, err
		}
	}
	return render.Encode(all)
}

// Value is JSON, if the text is; else the text.
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

// completeWorkflows offers the host's workflows.
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
