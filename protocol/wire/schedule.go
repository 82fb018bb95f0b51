package wire

// Schedule holds a workflow's settings for when its runs execute. It is part of the record, so that
// a run keeps the settings it was created with.
type Schedule struct {
	// Priority among the runs of the tenant; nil means the tenant's default.
	Priority    *int              `json:"priority,omitempty"`
	Concurrency *ConcurrencyLimit `json:"concurrency,omitempty"`
	Rate        *RateLimit        `json:"rate,omitempty"`
}

// ConcurrencyLimit limits the concurrent runs of a workflow.
type ConcurrencyLimit struct {
	// Key groups runs: the limit is per key. It is a digest of the input that the workflow names;
	// empty means one group.
	Key   string `json:"key,omitempty"`
	Limit int    `json:"limit"`
}

// RateLimit limits the runs of a workflow that start within any period of PeriodMs.
type RateLimit struct {
	Key      string `json:"key,omitempty"`
	Limit    int    `json:"limit"`
	PeriodMs int64  `json:"periodMs"`
}
