package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/show"
	"waybill.dev/waybill/internal/lifecycle"
)

func waitCommand(s *session.Session) *cobra.Command {
	var most time.Duration
	var toEnd bool
	c := &cobra.Command{
		Use:   "wait RUN",
		Short: "Wait until a run ends or waits for an answer",
		Long: `Waits until a run ends, waits for an answer or is paused, and prints it. With --to-end, waits
until the run ends.

` + exit.Help,
		Example: `  waybill run wait RUN && echo done
  waybill run wait @latest --for 5m -o json | jq .outputs`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: CompleteIDs(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := about(cmd, s, args[0])
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if most > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, most)
				defer cancel()
			}
			cmd.SetContext(ctx)
			err = o.wait(cmd, s, !toEnd)
			if errors.Is(err, context.DeadlineExceeded) {
				return exit.With(exit.Unreachable, fmt.Errorf("the run has not ended within %s", most))
			}
			return err
		},
	}
	c.Flags().DurationVar(&most, "for", 0, "maximum wait; 0 means no limit")
	c.Flags().BoolVar(&toEnd, "to-end", false, "wait until the run ends, even if it waits for an answer")
	return c
}

// quietly is the time without output after which what the run waits for is printed.
const quietly = 2 * time.Second

// wait waits for a run, prints it, and returns its outcome.
func (o *one) wait(cmd *cobra.Command, s *session.Session, untilAsked bool) error {
	r, err := o.await(cmd, s, untilAsked)
	if err != nil {
		return err
	}
	if r.Status.Waiting() {
		session.Notice(cmd, "%s", show.WaitReason(r.Snapshot))
		if r.Interrupt != nil {
			session.Notice(cmd, "how to answer: waybill interrupt show %s %s", o.id, r.Interrupt.NodeID)
		}
	}
	if err := o.snapshot(r, s.Now()); err != nil {
		return err
	}
	return outcome(r.Status)
}

// await polls a run's events until it ends, or with untilAsked until it waits, and returns its
// snapshot. Once the host has responded, await retries if it becomes unreachable.
func (o *one) await(cmd *cobra.Command, s *session.Session, untilAsked bool) (*client.Run, error) {
	ctx := cmd.Context()
	began, shown, pause := s.Now(), "", 250*time.Millisecond
	for next, reached := 0, false; ; {
		page, err := o.client.Events(ctx, o.id, client.EventQuery{From: next, Wait: 20 * time.Second})
		var r *client.Run
		if err == nil {
			reached, pause = true, 250*time.Millisecond
			next = page.LastEventSeq + 1
			if page.IsTerminal || untilAsked && page.RunStatus.Waiting() {
				r, err = o.client.Run(ctx, o.id)
			}
		}
		switch {
		case reached && ctx.Err() == nil && exit.Status(err) == exit.Unreachable: // it may restart
			session.Notice(cmd, "reconnecting: %v", err)
			if !lifecycle.Wait(ctx, pause) {
				return nil, ctx.Err()
			}
			pause = min(2*pause, 15*time.Second)
			continue
		case err != nil:
			return nil, err
		case r != nil && (r.Status.Terminal() || untilAsked && r.Status.Waiting()):
			return r, nil
		}
		if s.Now().Sub(began) > quietly {
			shown = o.progress(ctx, cmd, shown)
		}
		if page.RunStatus.Waiting() { // the host answers such polls immediately
			if !lifecycle.Wait(ctx, time.Second) {
				return nil, ctx.Err()
			}
		}
	}
}

// progress prints what the run waits for, if it differs from shown, and returns it.
func (o *one) progress(ctx context.Context, cmd *cobra.Command, shown string) string {
	r, err := o.client.Run(ctx, o.id)
	if err != nil {
		return shown
	}
	text := show.WaitReason(r.Snapshot)
	if text == "" {
		text = fmt.Sprintf("%s %s", r.Status, r.CurrentNodeID)
	}
	if text != shown {
		session.Notice(cmd, "%s", text)
	}
	return text
}
