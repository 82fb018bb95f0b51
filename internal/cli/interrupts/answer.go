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

// answerFlags are the flags of `interrupt answer`.
type answerFlags struct {
	value, action, feedback, edited, question, voter, key, reason string
	answers                                                       []string
	decline                                                       bool
}

func answerCommand(s *session.Session) *cobra.Command {
	var o answerFlags
	c := &cobra.Command{
		Use:   "answer RUN [NODE]",
		Short: "Answer an interrupt of a run",
		Long: `Answers an interrupt of a run. NODE is optional if the run has one open interrupt.

Approvals need an --action: accept, reject, refine (with --feedback), edit-accept (with --edited)
or ask (with --question). Clarifications need an --answer per question, forms an --answer per field.
--decline declines to answer a model's questions: the model continues without the answers, or its
node fails if settings.questions.onDecline says so.
--value sets the whole answer of any kind: JSON, @FILE, or - for standard input.

` + exit.Help,
		Example: `  waybill interrupt answer RUN gate --action accept
  waybill interrupt answer RUN gate --action refine --feedback 'shorter, please'
  waybill interrupt answer RUN ask --answer q1=blue --answer q2=true
  waybill interrupt answer RUN ask --decline --reason 'not known yet'
  echo '{"orderId":"A-1"}' | waybill interrupt answer RUN wait --value -`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: complete(s),
		RunE:              func(cmd *cobra.Command, args []string) error { return answer(cmd, s, args, o) },
	}
	f := c.Flags()
	f.StringVar(&o.action, "action", "", "action on an approval: accept, reject, refine, edit-accept or ask")
	f.StringVar(&o.feedback, "feedback", "", "feedback for the action")
	f.StringVar(&o.edited, "edited", "", "edited artifact, for edit-accept: JSON, @FILE or -")
	f.StringVar(&o.question, "question", "", "question, for ask")
	f.StringVar(&o.voter, "voter", "", "voter id, for credentials that several people share")
	f.StringArrayVar(&o.answers, "answer", nil, "ID=VALUE, the answer to a question or the value of a form field, as JSON or text (repeatable)")
	f.BoolVar(&o.decline, "decline", false, "decline to answer a model's questions")
	f.StringVar(&o.reason, "reason", "", "reason to pass on to the model, for --decline")
	f.StringVar(&o.value, "value", "", "whole answer: JSON, @FILE or -")
	f.StringVar(&o.key, "key", "", "Idempotency-Key; repeats with the same key answer once")
	c.MarkFlagsMutuallyExclusive("value", "action", "answer", "decline")
	return c
}

func answer(cmd *cobra.Command, s *session.Session, args []string, o answerFlags) error {
	if o.reason != "" && !o.decline {
		return exit.Usagef("--reason is for --decline; approvals take --feedback")
	}
	if o.value == "" && o.action == "" && len(o.answers) == 0 && !o.decline {
		return exit.Usagef("no answer: set --action, --answer, --decline or --value; waybill interrupt show %s shows which", strings.Join(args, " "))
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
	seen := ""
	if q.interrupt != nil {
		seen = q.interrupt.InterruptID
	}
	a, err := c.Resolve(cmd.Context(), q.runID, q.nodeID, seen, value, o.key)
	if err != nil {
		return err
	}
	return answered(cmd, p, a, q)
}

// offers rejects an action that the approval does not offer, and lists the offered ones. Without an
// open interrupt it rejects nothing: the host returns the reason.
func (o *open) offers(action string) error {
	if action == "" || o.interrupt == nil || o.interrupt.Kind != interrupt.Approval {
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
	return exit.With(exit.Refused, fault.New(fault.ValidationError, "--action %q is not offered; want %s", action, strings.Join(names, ", ")).With("allowedActions", names))
}

// build returns the answer of the flags; nil for --answer, which needs the interrupt.
func (o answerFlags) build(stdin io.Reader) (json.RawMessage, error) {
	switch {
	case o.value != "":
		return document(stdin, "--value", o.value)
	case len(o.answers) > 0:
		return nil, nil
	case o.decline:
		return o.declination()
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
			return nil, exit.Usagef("--action refine needs --feedback")
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
		return nil, exit.Usagef("--action edit-accept needs --edited")
	}
	return render.Encode(v)
}

// declination is the answer that declines a model's questions.
func (o answerFlags) declination() (json.RawMessage, error) {
	v := map[string]any{"declined": true}
	if o.reason != "" {
		v["reason"] = o.reason
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

// answered prints the result of an answer.
func answered(cmd *cobra.Command, p *render.Printer, a *client.Answer, q *open) error {
	var v struct {
		Status    string `json:"status"`
		Interrupt *struct {
			Outcome           interrupt.Outcome
			Accepts, Required int
		} `json:"interrupt"`
	}
	if err := json.Unmarshal(a.Body, &v); err != nil {
		return err
	}
	if a.Replayed {
		session.Notice(cmd, "replayed: the interrupt was answered with this key before")
	}
	return p.Document(a.Body, q.runID, func(w io.Writer) error {
		text := "answered"
		if v.Interrupt != nil && v.Interrupt.Required > v.Interrupt.Accepts {
			text = fmt.Sprintf("recorded: %d of %d approvals", v.Interrupt.Accepts, v.Interrupt.Required)
		}
		if v.Interrupt != nil && v.Interrupt.Outcome == interrupt.Declined {
			text = "declined"
		}
		_, err := fmt.Fprintf(w, "%s; run %s is %s\n", text, term.Clean(q.runID), term.Clean(v.Status))
		return err
	})
}
