package fanout

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"waybill.dev/waybill/test/harness"
)

// watcher is a client of the list of a tenant's runs.
type watcher struct {
	client *harness.Client
	// runs is the number of runs that end while it watches.
	runs int
	// opened is called once the watch is active.
	opened func()

	ended []string
}

func (w *watcher) watch(ctx context.Context) error {
	c := *w.client
	c.HTTP = &http.Client{Transport: opening{c.HTTP.Transport, w.opened}}
	a, err := c.Stream(ctx, "/v1/runs:watch", func(f harness.Frame) bool {
		var row struct{ RunID, Status string }
		if f.Event == "run" && json.Unmarshal([]byte(f.Data), &row) == nil && row.Status == "completed" {
			w.ended = append(w.ended, row.RunID)
		}
		return len(w.ended) < w.runs
	})
	if err != nil {
		return fmt.Errorf("the watch ended after %d runs of %d: %w", len(w.ended), w.runs, err)
	}
	if a.Status != http.StatusOK || len(w.ended) < w.runs {
		return fmt.Errorf("the watch ended after %d runs of %d: %d %s", len(w.ended), w.runs, a.Status, a.Body)
	}
	return nil
}

// opening calls back when the headers of an answer arrive.
type opening struct {
	http.RoundTripper

	opened func()
}

func (o opening) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := o.RoundTripper.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusOK {
		o.opened()
	}
	return res, err
}
