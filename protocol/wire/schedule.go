package wire

// Schedule is what a run's workflow says about when its runs are executed. It is part of the
// record, so that a run keeps the settings that it was created with.
type Schedule struct {
	// Priority among the runs of the tenant; nil: the tenant's default.
	Priority    *int              `json:"priority,omitempty"`
	Concurrency *ConcurrencyLimit `json:"concurrency,omitempty"`
	Rate        *RateLimit        `json:"rate,omitempty"`
}

// ConcurrencyLimit bounds the runs of a workflow that are executed at a time.
type ConcurrencyLimit struct {
	// Key groups runs: the limit is per key. It is a digest of the input that the workflow names;
	// empty: one group.
	Key   string `json:"key,omitempty"`
	Limit int    `json:"limit"`
}

// RateLimit bounds the runs of a workflow that start within any period of that length.
type RateLimit struct {
	Key      string `json:"key,omitempty"`
	Limit    int    `json:"limit"`
	PeriodMs int64  `json:"periodMs"`
}
