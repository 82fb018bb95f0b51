package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/show"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/internal/cli/waterfall"
	"waybill.dev/waybill/protocol/wire"
)

// watchFlags are the flags of `run watch`.
type watchFlags struct {
	from   int
	lines  bool
	chunks bool
}

func watchCommand(s *session.Session) *cobra.Command {
	var o watchFlags
	c := &cobra.Command{
		Use:   "watch RUN",
		Short: "Follow a run to its end",
		Long: `Follows the events of a run to its end, across restarts of the host. On a terminal it draws one
line per node, with a bar per attempt. Otherwise, or with --lines, it prints one line per event:
sequence, time, type, node and details. The outputs of the run follow on standard error.

Signs: ↻ retried  ⑂ branched within the node  ✂ truncated  ⃠ refused by the model  ⌁ JSON repaired  NL answered in prose first
A→B model substituted  ∅ no capable model  ⛔ limit reached  ? waits for an answer

` + exit.Help,
		Example: `  waybill run watch @latest
  waybill run watch RUN | grep node.failed
  waybill run watch RUN -o jsonl`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: CompleteIDs(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := about(cmd, s, args[0])
			if err != nil {
				return err
			}
			if _, err := at.client.Run(cmd.Context(), at.id); err != nil {
				return err // such as an unknown run or an unreachable host
			}
			link(cmd, at.client, at.id)
			return at.watch(cmd, s, o)
		},
	}
	f := c.Flags()
	f.IntVar(&o.from, "from", 0, "first sequence to show")
	f.BoolVar(&o.lines, "lines", false, "print one line per event, also on a terminal")
	f.BoolVar(&o.chunks, "chunks", false, "show every chunk of a model's answer instead of their number")
	return c
}

// watch follows a run to its end and returns its outcome.
func (o *one) watch(cmd *cobra.Command, s *session.Session, f watchFlags) error {
	if f.from < 0 {
		return exit.Usagef("--from %d: must be at least 0", f.from)
	}
	screen := term.IsTTY(o.print.Out) && o.print.Format.ForPeople() && o.print.Query == nil && !f.lines
	var show viewer
	switch {
	case screen:
		show = newDrawing(o.print, s, o.id)
	case o.print.Format.ForPeople() && o.print.Query == nil:
		show = &lines{
			print:  o.print,
			chunks: f.chunks,
			chart:  waterfall.New(o.id),
			now:    s.Now,
			notice: func(text string) { session.Notice(cmd, "%s", text) },
		}
	default:
		show = &documents{print: o.print, runID: o.id}
	}
	opts := client.FollowOptions{From: f.from, OnState: func(state client.State, err error) {
		if !screen {
			printState(cmd, state, err)
		}
	}}
	var last client.Event
	err := follow(cmd.Context(), o.client, o.id, opts, show, &last)
	if err := errors.Join(err, show.end(last)); err != nil {
		return err
	}
	if o.print.Format.ForPeople() && o.print.Query == nil {
		noticeOutputs(cmd, o.id, last)
	}
	return outcome(statusAfter(last))
}

// maxOutputs limits the outputs that a watch prints, in bytes.
const maxOutputs = 4096

// noticeOutputs prints the outputs of a run that has completed, apart from the lines of its events.
func noticeOutputs(cmd *cobra.Command, id string, last client.Event) {
	var payload struct {
		Outputs json.RawMessage `json:"outputs"`
	}
	switch {
	case last.Type != wire.EventRunCompleted || json.Unmarshal(last.Payload, &payload) != nil || len(payload.Outputs) == 0:
	case len(payload.Outputs) > maxOutputs:
		session.Notice(cmd, "outputs: %d bytes; waybill run get %s prints them", len(payload.Outputs), id)
	default:
		session.Notice(cmd, "outputs %s", payload.Outputs)
	}
}

// printState prints a change from streaming to reconnecting or polling.
func printState(cmd *cobra.Command, state client.State, err error) {
	switch {
	case state == client.Reconnecting && err != nil:
		session.Notice(cmd, "reconnecting: %v", err)
	case state == client.Polling:
		session.Notice(cmd, "polling: the stream delivers no events; check for a buffering proxy with waybill doctor")
	}
}

// viewer displays events.
type viewer interface {
	event(e client.Event) error
	tick() error
	end(last client.Event) error
}

// tickInterval is how often the viewer is updated without an event.
const tickInterval = 250 * time.Millisecond

// follow passes events to a viewer until the run ends.
func follow(ctx context.Context, c *client.Client, id string, opts client.FollowOptions, v viewer, last *client.Event) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type news struct {
		event client.Event
		err   error
	}
	feed := make(chan news)
	go func() {
		defer close(feed)
		for e, err := range c.Follow(ctx, id, opts) {
			select {
			case feed <- news{e, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	t := time.NewTicker(tickInterval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if err := v.tick(); err != nil {
				return err
			}
		case n, more := <-feed:
			if !more {
				return ctx.Err()
			}
			if n.err != nil {
				return n.err
			}
			*last = n.event
			if err := v.event(n.event); err != nil {
				return err
			}
		}
	}
}

// statusAfter returns the status of a run after its last event.
func statusAfter(e client.Event) wire.Status {
	switch e.Type {
	case wire.EventRunFailed:
		return wire.StatusFailed
	case wire.EventRunCancelled:
		return wire.StatusCancelled
	default:
		return wire.StatusCompleted
	}
}

// lines prints one line per event.
type lines struct {
	print  *render.Printer
	chunks bool
	// held counts the chunks of an answer that were not printed; heldAt is the first of them.
	held   int
	heldAt client.Event
	// chart has the open interrupts. Two seconds after lastEvent, tick prints them once with notice.
	chart     *waterfall.Chart
	now       func() time.Time
	lastEvent time.Time
	noticed   bool
	notice    func(text string)
}

func (l *lines) event(e client.Event) error {
	l.chart.Add(e.Event)
	l.lastEvent, l.noticed = l.now(), false
	if !l.chunks && (e.Type == "output.chunk" || e.Type == "agent.reasoning.delta") {
		if l.held++; l.held == 1 {
			l.heldAt = e
		}
		return nil
	}
	if err := l.flush(); err != nil {
		return err
	}
	return l.write(e, show.Detail(e.Event))
}

// flush prints the number of chunks that were held.
func (l *lines) flush() error {
	n := l.held
	if l.held = 0; n == 0 {
		return nil
	}
	return l.write(l.heldAt, fmt.Sprintf("%d chunks of the model's answer", n))
}

func (l *lines) write(e client.Event, detail string) error {
	kind := string(e.Type)
	pad := strings.Repeat(" ", max(0, 24-len(kind)))
	if l.print.Color {
		kind = term.Paint(kind, word(e.Type))
	}
	text := fmt.Sprintf("%5d  %s  %s%s  %s", e.Sequence, show.Clock(e.Timestamp), kind, pad, term.Clean(e.NodeID))
	if detail != "" {
		text += strings.Repeat(" ", max(1, 14-len(e.NodeID))) + detail
	}
	if !l.print.Color {
		text = render.Cut(text, l.print.Width)
	}
	_, err := fmt.Fprintln(l.print.Out, strings.TrimRight(text, " "))
	return err
}

// word returns the word that determines the color of an event.
func word(t wire.EventType) string {
	switch {
	case strings.HasSuffix(string(t), ".failed"), t == "envelope.refusal", t == "cap.breached", t == "envelope.retry.exhausted":
		return "failed"
	case strings.HasSuffix(string(t), ".completed"), t == "artifact.created":
		return "completed"
	case strings.HasSuffix(string(t), ".requested"), strings.HasPrefix(string(t), "envelope."):
		return "warn"
	default:
		return ""
	}
}

// tick prints what the run waits for, after a time without events.
func (l *lines) tick() error {
	if l.noticed || l.lastEvent.IsZero() || l.now().Sub(l.lastEvent) < quietly {
		return nil
	}
	l.noticed = true
	for _, text := range l.chart.Waiting() {
		l.notice(text)
	}
	return nil
}

func (l *lines) end(client.Event) error { return l.flush() }

// documents writes events as JSON: one line per event, or one document at the end.
type documents struct {
	print *render.Printer
	runID string
	all   []client.Event
}

func (d *documents) event(e client.Event) error {
	if d.print.Format == render.JSONL || d.print.Format == render.Name {
		return d.print.Document(e.Doc, e.EventID, nil)
	}
	d.all = append(d.all, e)
	return nil
}

func (*documents) tick() error { return nil }

func (d *documents) end(last client.Event) error {
	if d.print.Format == render.JSONL || d.print.Format == render.Name {
		return nil
	}
	docs := make([]any, len(d.all))
	for i, e := range d.all {
		docs[i] = e.Doc
	}
	return d.print.Value(map[string]any{"runId": d.runID, "status": statusAfter(last), "events": docs}, d.runID, nil)
}

// drawing redraws the chart of the run in place.
type drawing struct {
	print *render.Printer
	clock *session.Session
	chart *waterfall.Chart
	drawn int // lines of the drawing on the screen
	at    time.Time
}

func newDrawing(p *render.Printer, s *session.Session, runID string) *drawing {
	return &drawing{print: p, clock: s, chart: waterfall.New(runID)}
}

// soonest is the minimum time between two drawings.
const soonest = 50 * time.Millisecond

func (d *drawing) event(e client.Event) error {
	d.chart.Add(e.Event)
	if d.clock.Now().Sub(d.at) < soonest {
		return nil
	}
	return d.tick()
}

func (d *drawing) tick() error { return d.draw(d.clock.Now()) }

func (d *drawing) end(last client.Event) error {
	at := d.clock.Now()
	if t, err := time.Parse(time.RFC3339, last.Timestamp); err == nil && last.Type.Terminal() {
		at = t // bars of an ended run stop at its end
	}
	return d.draw(at)
}

func (d *drawing) draw(at time.Time) error {
	d.at = d.clock.Now()
	width, height := term.Size(d.print.Out, d.clock.Getenv)
	var b strings.Builder
	if d.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", d.drawn)
	}
	all := d.chart.Lines(at, max(width-1, 40), height, d.print.Color)
	for _, line := range all {
		b.WriteString("\x1b[2K" + line + "\n")
	}
	b.WriteString("\x1b[J")
	d.drawn = len(all)
	_, err := io.WriteString(d.print.Out, b.String())
	return err
}
