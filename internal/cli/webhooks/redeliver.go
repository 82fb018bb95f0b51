package webhooks

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
)

// redelivered is the outcome of an attempt.
type redelivered struct {
	RunID     string `json:"runId"`
	Sequence  int    `json:"sequence"`
	Delivered bool   `json:"delivered"`
	Reason    string `json:"reason,omitempty"`
}

func (r redelivered) name() string { return r.RunID + "/" + strconv.Itoa(r.Sequence) }

// errNotDelivered: a receiver did not accept an event.
var errNotDelivered = errors.New("not all events were delivered")

func redeliverCommand(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:   "redeliver WEBHOOK RUN/EVENT...",
		Short: "Send events once more that a webhook did not deliver",
		Long: `Sends each event once more, now, as the same message. An event that the receiver accepts leaves the list of
failed deliveries. Names are those of waybill webhook deliveries -o name. Needs the scope webhooks:manage.
Exit status 6 if an event was not delivered.

` + exit.Help,
		Example: `  waybill webhook redeliver wh_06f2m8k4v9q3x7b1c5d0e8g2hj run_06f2m8k4v9q3x7b1c5d0e8g2hj/84
  waybill webhook deliveries WEBHOOK -o name | xargs waybill webhook redeliver WEBHOOK`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return redeliver(cmd, s, args[0], args[1:]) },
	}
	s.Flags(c)
	return c
}

func redeliver(cmd *cobra.Command, s *session.Session, webhookID string, names []string) error {
	events := make([]redelivered, len(names))
	for i, name := range names {
		run, number, ok := strings.Cut(name, "/")
		sequence, err := strconv.ParseInt(number, 10, 32)
		if !ok || run == "" || err != nil || sequence < 0 {
			return exit.Usagef("%q: want RUN/EVENT, such as run_06f2m8k4v9q3x7b1c5d0e8g2hj/84", name)
		}
		events[i] = redelivered{RunID: run, Sequence: int(sequence)}
	}
	c, p, err := open(cmd, s)
	if err != nil {
		return err
	}
	failed := false
	for i := range events {
		e := &events[i]
		r, err := c.Redeliver(cmd.Context(), webhookID, e.RunID, e.Sequence)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name(), err)
		}
		e.Delivered, e.Reason = r.Delivered, r.Reason
		failed = failed || !r.Delivered
	}
	doc, err := render.Encode(map[string]any{"deliveries": events})
	if err != nil {
		return err
	}
	err = render.Rows(p, doc, events, row[redelivered], redelivered.name, []render.Column[redelivered]{
		{Name: "EVENT", Value: redelivered.name},
		{Name: "DELIVERED", Value: func(r redelivered) string { return strconv.FormatBool(r.Delivered) }},
		{Name: "REASON", Flex: true, Value: func(r redelivered) string { return r.Reason }},
	})
	if err == nil && failed {
		err = exit.With(exit.Refused, errNotDelivered)
	}
	return err
}
