package offline

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"

	"waybill.dev/waybill/internal/archive"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// Sizes of pages (OpenWOP host contract §4.7).
const (
	defaultRuns, maxRuns     = 50, 200
	defaultEvents, maxEvents = 1000, 5000
)

// row is a run in the list of runs.
type row struct {
	RunID        string      `json:"runId"`
	WorkflowID   string      `json:"workflowId"`
	Status       wire.Status `json:"status"`
	CreatedAt    string      `json:"createdAt"`
	StartedAt    string      `json:"startedAt,omitempty"`
	CompletedAt  string      `json:"completedAt,omitempty"`
	Tags         []string    `json:"tags,omitempty"`
	ErrorCode    string      `json:"errorCode,omitempty"`
	LastSequence int         `json:"lastSequence"`
}

func summary(a *archive.Archive) (row, error) {
	r := row{LastSequence: len(a.Events) - 1}
	var failed struct {
		Error *struct{ Code string }
	}
	if err := json.Unmarshal(a.Snapshot, &r); err != nil {
		return r, fault.New(fault.LogDamaged, "archive %s: run: %s", a.Name(), err.Error())
	}
	if json.Unmarshal(a.Snapshot, &failed) == nil && failed.Error != nil {
		r.ErrorCode = failed.Error.Code
	}
	return r, nil
}

// list answers the list of runs. Its filters are those that snapshots answer.
func (t *Transport) list(ctx context.Context, q url.Values) ([]byte, error) {
	for _, name := range []string{"filter", "sort", "order"} {
		if q.Get(name) != "" {
			return nil, fault.InvalidQuery(name, "archives are listed by status, workflow and tag, newest first")
		}
	}
	limit, err := number(q, "limit", defaultRuns, 1, maxRuns)
	if err != nil {
		return nil, err
	}
	from, err := number(q, "cursor", 0, 0, 1<<30)
	if err != nil {
		return nil, err
	}
	all, err := t.all(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(r row) bool {
		return q.Get("status") != "" && q.Get("status") != string(r.Status) ||
			q.Get("workflowId") != "" && q.Get("workflowId") != r.WorkflowID ||
			q.Get("tag") != "" && !slices.Contains(r.Tags, q.Get("tag"))
	})
	page := struct {
		Runs       []row  `json:"runs"`
		NextCursor string `json:"nextCursor,omitempty"`
	}{Runs: []row{}}
	if from < len(all) {
		page.Runs = all[from:min(len(all), from+limit)]
	}
	if end := from + limit; end < len(all) {
		page.NextCursor = strconv.Itoa(end)
	}
	return json.Marshal(page)
}

// poll answers a page of a run's events.
func poll(a *archive.Archive, q url.Values) ([]byte, error) {
	last, err := number(q, "lastSequence", -1, -1, 1<<30)
	if err != nil {
		return nil, err
	}
	limit, err := number(q, "limit", defaultEvents, 1, maxEvents)
	if err != nil {
		return nil, err
	}
	var run struct{ Status wire.Status }
	if err := json.Unmarshal(a.Snapshot, &run); err != nil {
		return nil, fault.New(fault.LogDamaged, "archive %s: run: %s", a.Name(), err.Error())
	}
	from := min(last+1, len(a.Events))
	end := min(from+limit, len(a.Events))
	page := struct {
		RunID        string            `json:"runId"`
		Events       []json.RawMessage `json:"events"`
		IsComplete   bool              `json:"isComplete"`
		IsTerminal   bool              `json:"isTerminal"`
		LastEventSeq int               `json:"lastEventSeq"`
		RunStatus    wire.Status       `json:"runStatus"`
	}{a.RunID, append([]json.RawMessage{}, a.Events[from:end]...), end == len(a.Events), true, max(last, end-1), run.Status}
	return json.Marshal(page)
}

// number reads a query parameter.
func number(q url.Values, name string, absent, least, most int) (int, error) {
	text := q.Get(name)
	if text == "" {
		return absent, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fault.InvalidQuery(name, "want an integer from %d to %d", least, most)
	}
	return n, nil
}
