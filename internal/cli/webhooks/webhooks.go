// Package webhooks has the commands for webhooks.
package webhooks

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/protocol/strictjson"
)

// Command is `waybill webhook`.
func Command(s *session.Session) *cobra.Command {
	c := &cobra.Command{Use: "webhook", Short: "Register, list and delete webhooks, and list and send what they did not deliver"}
	c.AddCommand(listCommand(s), deliveriesCommand(s), redeliverCommand(s), registerCommand(s), rotateCommand(s), deleteCommand(s))
	return c
}

// page are the flags of a list.
type page struct {
	limit  int
	cursor string
}

func (o *page) flags(c *cobra.Command, what string) {
	c.Flags().IntVar(&o.limit, "limit", 50, what+" per page, 1 to 200")
	c.Flags().StringVar(&o.cursor, "cursor", "", "cursor of the previous page")
}

// open returns what a list needs.
func (o *page) open(cmd *cobra.Command, s *session.Session) (*client.Client, *render.Printer, error) {
	if o.limit < 1 || o.limit > 200 {
		return nil, nil, exit.Usagef("--limit %d: must be 1 to 200", o.limit)
	}
	return open(cmd, s)
}

func open(cmd *cobra.Command, s *session.Session) (*client.Client, *render.Printer, error) {
	p, err := s.Printer(cmd)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.Client(cmd)
	return c, p, err
}

// rest prints the cursor of the next page after a table, or that the list is empty.
func rest(cmd *cobra.Command, p *render.Printer, what string, n int, next string) {
	switch {
	case !p.Format.ForPeople():
	case next != "":
		session.Notice(cmd, "more %s: use --cursor %s", what, next)
	case n == 0:
		session.Notice(cmd, "no %s", what)
	}
}

func listCommand(s *session.Session) *cobra.Command {
	o := &page{}
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List webhooks and the servers of callbacks",
		Long: `Lists the webhooks of the key's tenant, and the servers that its runs name in callbackUrl, whose ids begin
with cb_. DROPPED counts events that were not queued, because the webhook had too many runs with pending
deliveries. Needs the scope webhooks:manage.

` + exit.Help,
		Example: `  waybill webhook list
  waybill webhook list -o json --query '.webhooks[] | select(.droppedEvents > 0)'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, p, err := o.open(cmd, s)
			if err != nil {
				return err
			}
			found, err := c.Webhooks(cmd.Context(), o.limit, o.cursor)
			if err != nil {
				return err
			}
			if err := printWebhooks(p, found); err != nil {
				return err
			}
			rest(cmd, p, "webhooks", len(found.Webhooks), found.NextCursor)
			return nil
		},
	}
	o.flags(c, "webhooks")
	s.Flags(c)
	return c
}

func printWebhooks(p *render.Printer, found *client.WebhookPage) error {
	return render.Rows(p, found.Doc, found.Webhooks, row[client.Webhook], func(w client.Webhook) string { return w.WebhookID }, []render.Column[client.Webhook]{
		{Name: "WEBHOOK", Value: func(w client.Webhook) string { return w.WebhookID }},
		{Name: "STATUS", Value: func(w client.Webhook) string { return w.Status }},
		{Name: "FAILURES", Value: func(w client.Webhook) string { return strconv.Itoa(w.RecentFailures) }},
		{Name: "DROPPED", Value: func(w client.Webhook) string { return strconv.FormatInt(w.DroppedEvents, 10) }},
		{Name: "EVENTS", Value: func(w client.Webhook) string { return strings.Join(w.Events, ",") }},
		{Name: "URL", Flex: true, Value: func(w client.Webhook) string { return w.URL }},
	})
}

func row[T any](v T) []byte {
	b, err := render.Encode(v)
	if err != nil {
		return nil
	}
	return b
}

func deliveriesCommand(s *session.Session) *cobra.Command {
	o := &page{}
	var pending bool
	c := &cobra.Command{
		Use:   "deliveries WEBHOOK",
		Short: "List the events that a webhook did not deliver",
		Long: `Lists the events that were given up, with the reason; they are kept for 30 days. With --pending, the next
event of each run that waits, and when it may be sent.

` + exit.Help,
		Example: `  waybill webhook deliveries wh_06f2m8k4v9q3x7b1c5d0e8g2hj
  waybill webhook deliveries wh_06f2m8k4v9q3x7b1c5d0e8g2hj --pending`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, p, err := o.open(cmd, s)
			if err != nil {
				return err
			}
			status := "failed"
			if pending {
				status = "pending"
			}
			found, err := c.Deliveries(cmd.Context(), args[0], status, o.limit, o.cursor)
			if err != nil {
				return err
			}
			if err := printDeliveries(p, found); err != nil {
				return err
			}
			rest(cmd, p, status+" deliveries", len(found.Deliveries), found.NextCursor)
			return nil
		},
	}
	c.Flags().BoolVar(&pending, "pending", false, "list events that wait, instead of those that were given up")
	o.flags(c, "deliveries")
	s.Flags(c)
	return c
}

func printDeliveries(p *render.Printer, found *client.DeliveryPage) error {
	id := func(d client.Delivery) string { return d.RunID + "/" + strconv.Itoa(d.Sequence) }
	return render.Rows(p, found.Doc, found.Deliveries, row[client.Delivery], id, []render.Column[client.Delivery]{
		{Name: "RUN", Value: func(d client.Delivery) string { return d.RunID }},
		{Name: "EVENT", Value: func(d client.Delivery) string { return strings.TrimSpace(strconv.Itoa(d.Sequence) + " " + d.Type) }},
		{Name: "ATTEMPTS", Value: func(d client.Delivery) string { return strconv.Itoa(d.Attempts) }},
		{Name: "AT", Value: func(d client.Delivery) string { return d.FailedAt + d.NextAttemptAt }},
		{Name: "REASON", Flex: true, Value: func(d client.Delivery) string { return d.Reason }},
	})
}

func registerCommand(s *session.Session) *cobra.Command {
	var w client.NewWebhook
	c := &cobra.Command{
		Use:   "register URL --event TYPE...",
		Short: "Register a webhook, and print its secret once",
		Long: `Registers a webhook for events that are recorded from now on. The secret, which receivers check signatures
with, is printed once: no other command shows it.

` + exit.Help,
		Example: `  waybill webhook register https://hooks.example/waybill --event run.completed --event run.failed --tag billing`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(w.Events) == 0 {
				return exit.Usagef("--event: name at least one type of event, such as run.completed")
			}
			c, p, err := open(cmd, s)
			if err != nil {
				return err
			}
			w.URL = args[0]
			a, err := c.RegisterWebhook(cmd.Context(), w)
			if err != nil {
				return err
			}
			return printSecret(p, a)
		},
	}
	c.Flags().StringArrayVar(&w.Events, "event", nil, "type of the events to send, such as run.completed (repeatable)")
	c.Flags().StringArrayVar(&w.Tags, "tag", nil, "send events of runs with one of these tags only (repeatable)")
	s.Flags(c)
	return c
}

// printSecret prints the answers that have a secret.
func printSecret(p *render.Printer, a *client.Answer) error {
	members := strictjson.Object(a.Body)
	id, _ := strictjson.String(members["webhookId"])
	secret, _ := strictjson.String(members["secret"])
	return p.Document(a.Body, id, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "webhook  %s\nsecret   %s\n", term.Clean(id), term.Clean(secret))
		return err
	})
}

func rotateCommand(s *session.Session) *cobra.Command {
	var overlap time.Duration
	c := &cobra.Command{
		Use:   "rotate WEBHOOK",
		Short: "Create a new secret of a webhook, and print it once",
		Long: `Creates a new secret of a webhook or of the callbacks to a server. The previous secret signs, too, until the
overlap ends.

` + exit.Help,
		Example: `  waybill webhook rotate wh_06f2m8k4v9q3x7b1c5d0e8g2hj --overlap 48h`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, p, err := open(cmd, s)
			if err != nil {
				return err
			}
			seconds := -1
			if cmd.Flags().Changed("overlap") {
				if seconds = int(overlap / time.Second); overlap < 0 || overlap%time.Second != 0 {
					return exit.Usagef("--overlap %s: must be whole seconds, 0s to 168h", overlap)
				}
			}
			a, err := c.RotateWebhook(cmd.Context(), args[0], seconds)
			if err != nil {
				return err
			}
			return printSecret(p, a)
		},
	}
	c.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the previous secret signs, too, at most 168h")
	s.Flags(c)
	return c
}

func deleteCommand(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:     "delete WEBHOOK",
		Aliases: []string{"rm"},
		Short:   "Delete a webhook with its pending deliveries",
		Long: `Deletes a webhook with its pending deliveries. The callbacks to a server (cb_…) end until another run names
the server.

` + exit.Help,
		Example: `  waybill webhook delete wh_06f2m8k4v9q3x7b1c5d0e8g2hj`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, p, err := open(cmd, s)
			if err != nil {
				return err
			}
			if _, err := c.DeleteWebhook(cmd.Context(), args[0]); err != nil {
				return err
			}
			deleted := struct {
				WebhookID string `json:"webhookId"`
				Deleted   bool   `json:"deleted"`
			}{args[0], true}
			return p.Value(deleted, args[0], func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s deleted\n", term.Clean(args[0]))
				return err
			})
		},
	}
	s.Flags(c)
	return c
}
