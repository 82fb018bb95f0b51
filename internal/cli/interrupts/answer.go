package interrupts

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/runs"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
)

// answerFlags are those of `interrupt answer`, as they are given.
type answerFlags struct {
	value, action, feedback, edited, question, voter, key string
	answers                                               []string
}

func answerCommand(s *session.Session) *cobra.Command {
	var o answerFlags
	c := &cobra.Command{
		Use:   "answer RUN [NODE]",
		Short: "Answer what a run asks",
		Long: `Answers what a node of a run asks. NODE may be left out where the run asks one thing.

An approval takes an --action that it offers: accept, reject, refine (with --feedback),
edit-accept (with --edited), ask (with --question). A clarification takes an --answer for
each question, a form one for each field. Everything takes the whole answer as JSON:
--value, from a file with @FILE, from standard input with -.

` + exit.Help,
		Example: `  waybill interrupt answer RUN gate --action accept
  waybill interrupt answer RUN gate --action refine --feedback 'shorter, please'
  waybill interrupt answer RUN ask --answer q1=blue --answer q2=true
  echo '{"orderId":"A-1"}' | waybill interrupt answer RUN wait --value -`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: complete(s),
		RunE:              func(cmd *cobra.Command, args []string) error { return answer(cmd, s, args, o) },
	}
	f := c.Flags()
	f.StringVar(&o.action, "action", "", "what to do with an approval: accept, reject, refine, edit-accept or ask")
	f.StringVar(&o.feedback, "feedback", "", "what to say with it")
	f.StringVar(&o.edited, "edited", "", "the edited artifact, for edit-accept: JSON, @FILE or -")
	f.StringVar(&o.question, "question", "", "what to ask, for ask")
	f.StringVar(&o.voter, "voter", "", "who votes, where the credential is of nobody in particular")
	f.StringArrayVar(&o.answers, "answer", nil, "ID=VALUE: the answer to one question, or one field of a form; JSON, or else text (repeatable)")
	f.StringVar(&o.value, "value", "", "the whole answer: JSON, @FILE or -")
	f.StringVar(&o.key, "key", "", "Idempotency-Key: the same key answers once")
	c.MarkFlagsMutuallyExclusive("value", "action", "answer")
	return c
}

func answer(cmd *cobra.Command, s *session.Session, args []string, o answerFlags) error {
	if o.value == "" && o.action == "" && len(o.answers) == 0 {
		return exit.Usagef("nothing to answer with: give --action, --answer or --value; waybill interrupt show %s says which", strings.Join(args, " "))
	}
	p, err := s.Printer(cmd)
	if err != nil {
		return err
	}
	value, err := o.build(cmd.InOrStdin())
	if err != nil {
		return err
	}
	c, err := s.Client(cmd)
	if err != nil {
		return err
	}
	q, err := find(cmd.Context(), c, args[0], second(args))
	if err != nil {
		return err
	}
	if err := q.offers(o.action); err != nil {
		return err
	}
	if len(o.answers) > 0 {
		if value, err = q.replies(o.answers); err != nil {
			return err
		}
	}
	a, err := c.Resolve(cmd.Context(), q.runID, q.nodeID, value, o.key)
	if err != nil {
		return err
	}
	return answered(cmd, p, a, q)
}

// offers refuses an action that the question does not offer, and says which it does. A
// node that asks nothing is the host's to refuse: it knows why.
func (o *open) offers(action string) error {
	if action == "" || o.asked == nil || o.asked.Kind != interrupt.Approval {
		return nil
	}
	offered := o.data().Actions
	if len(offered) == 0 || slices.Contains(offered, interrupt.Action(action)) {
		return nil
	}
	names := make([]string, len(offered))
	for i, a := range offered {
		names[i] = string(a)
	}
	return exit.With(exit.Refused, fault.New(fault.ValidationError, "%q is not offered here: want %s", action, strings.Join(names, ", ")).With("allowedActions", names))
}

// build is the answer that the flags make.
func (o answerFlags) build(stdin io.Reader) (json.RawMessage, error) {
	switch {
	case o.value != "":
		return document(stdin, "--value", o.value)
	case len(o.answers) > 0:
		return nil, nil // it depends on what is asked
	}
	v := map[string]any{"action": o.action}
	set := func(name, text string) {
		if text != "" {
			v[name] = text
		}
	}
	set("voter", o.voter)
	set("question", o.question)
	if o.action == string(interrupt.Refine) {
		if o.feedback == "" {
			return nil, exit.Usagef("--action refine: say with --feedback what to change")
		}
		v["refineFeedback"] = map[string]string{"scope": "whole", "text": o.feedback}
	} else {
		set("feedback", o.feedback)
	}
	if o.edited != "" {
		doc, err := document(stdin, "--edited", o.edited)
		if err != nil {
			return nil, err
		}
		v["editedArtifactData"] = doc
	} else if o.action == string(interrupt.EditAccept) {
		return nil, exit.Usagef("--action edit-accept: give the edited artifact with --edited")
	}
	return render.Encode(v)
}

func document(stdin io.Reader, name, text string) (json.RawMessage, error) {
	b, err := runs.Read(stdin, name, text)
	if err != nil {
		return nil, err
	}
	if !json.Valid(b) {
		return nil, exit.Usagef("%s: want JSON, @FILE or -", name)
	}
	return b, nil
}

// answered shows what became of an answer.
func answered(cmd *cobra.Command, p *render.Printer, a *client.Answer, q *open) error {
	var v struct {
		Status    string `json:"status"`
		Interrupt *struct {
			Accepts, Required int
		} `json:"interrupt"`
	}
	if err := json.Unmarshal(a.Body, &v); err != nil {
		return err
	}
	if a.Replayed {
		session.Talk(cmd, "replayed: this key has answered before")
	}
	return p.Document(a.Body, q.runID, func(w io.Writer) error {
		text := "answered"
		if v.Interrupt != nil && v.Interrupt.Required > v.Interrupt.Accepts {
			text = fmt.Sprintf("counted: %d of %d", v.Interrupt.Accepts, v.Interrupt.Required)
		}
		_, err := fmt.Fprintf(w, "%s; run %s is %s\n", text, term.Clean(q.runID), term.Clean(v.Status))
		return err
	})
}
