package fanout

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"waybill.dev/waybill/test/harness"
)

// follower is a client of a run's events. It reconnects with its last id until the run has ended.
type follower struct {
	client *harness.Client
	run    string
	// leaves is the sequence after which it disconnects and reconnects; -1 never.
	leaves int
	// reads releases its reading; nil reads immediately.
	reads <-chan struct{}
	// asked is called when it has received the run's question.
	asked func()

	got []harness.Frame
	// streams counts its connections.
	streams int
}

const terminal = "run.completed"

func (f *follower) follow(ctx context.Context) error {
	once := sync.OnceFunc(f.asked)
	for {
		var last []string
		if n := len(f.got); n > 0 {
			last = []string{"Last-Event-ID", f.got[n-1].ID}
		}
		f.streams++
		a, err := f.client.Stream(ctx, "/v1/runs/"+f.run+"/events?streamMode=debug", func(fr harness.Frame) bool {
			if fr.Event == "" {
				return true // a comment
			}
			f.got = append(f.got, fr)
			if fr.Event == "interrupt.requested" {
				once()
				if f.reads != nil {
					select {
					case <-f.reads:
					case <-ctx.Done():
					}
				}
			}
			if fr.ID == strconv.Itoa(f.leaves) {
				f.leaves = -1
				return false
			}
			return fr.Event != terminal
		}, last...)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %d events until the time was up", f.run, len(f.got))
		case err != nil && f.streams > 10:
			return fmt.Errorf("%s: stream no. %d: %w", f.run, f.streams, err)
		case err == nil && a.Status != http.StatusOK:
			return fmt.Errorf("%s: %d %s", f.run, a.Status, a.Body)
		}
		if n := len(f.got); n > 0 && f.got[n-1].Event == terminal {
			return nil
		}
	}
}

// check compares the received events with the recorded ones.
func (f *follower) check(events []harness.Event) error {
	for i, fr := range f.got {
		if fr.ID != strconv.Itoa(i) {
			return fmt.Errorf("%s: event no. %d has the id %s, after %d streams", f.run, i, fr.ID, f.streams)
		}
		if i >= len(events) || fr.Data != string(events[i].Raw) {
			return fmt.Errorf("%s: event no. %d differs from the recorded event: %s", f.run, i, fr.Data)
		}
	}
	if len(f.got) != len(events) {
		return fmt.Errorf("%s: %d events of %d", f.run, len(f.got), len(events))
	}
	return nil
}
