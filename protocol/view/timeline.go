package view

import "math/big"

// Timeline shows when nodes were active. Times are milliseconds since the run's creation.
type Timeline struct {
	// Last is the time of the last event.
	Last int64 `json:"last"`
	// Run is the bar of the run itself, and Marks are its marks.
	Run   *Bar    `json:"run"`
	Marks []*Mark `json:"marks"`
	// Lanes has a lane for each node, in the order of the first start.
	Lanes []*Lane `json:"lanes"`
}

// Lane is the line of a node.
type Lane struct {
	NodeID string  `json:"nodeId"`
	TypeID string  `json:"typeId,omitempty"`
	Status string  `json:"status"`
	Bars   []*Bar  `json:"bars"`
	Marks  []*Mark `json:"marks"`
}

// Bar is one attempt of a node, or a part of one between two waits.
type Bar struct {
	// Attempt is the attempt, from 0.
	Attempt int `json:"attempt"`
	// Sequence is the event that starts the bar.
	Sequence int   `json:"sequence"`
	From     int64 `json:"from"`
	// To is nil while the attempt continues.
	To     *int64  `json:"to,omitempty"`
	Status string  `json:"status"`
	Parts  []*Part `json:"parts"`
}

// PartKind is what a part of a bar was spent on.
type PartKind string

// The kinds: waiting, a model call, and the host's own work.
const (
	PartWait PartKind = "wait"
	PartCall PartKind = "call"
	PartWork PartKind = "work"
)

// Part is what an attempt does for a part of its time.
type Part struct {
	Kind PartKind `json:"kind"`
	From int64    `json:"from"`
	To   *int64   `json:"to,omitempty"`
}

// Mark is a notable event.
type Mark struct {
	Sequence int    `json:"sequence"`
	At       int64  `json:"at"`
	Sign     string `json:"sign"`
	Words    string `json:"words"`
	// Tone is ask, bad, swap or run.
	Tone string `json:"tone"`
}

// Cost lists the model calls with their tokens and cost.
type Cost struct {
	Calls []*CostCall `json:"calls"`
	// Total sums all calls, Retries those that repeat an earlier one.
	Total   Sum `json:"total"`
	Retries Sum `json:"retries"`
}

// Usage is what a provider reports about a call. The cost is an estimate.
type Usage struct {
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	// Counts are exact, and may exceed 64 bits.
	InputTokens  *big.Int `json:"inputTokens,omitempty"`
	OutputTokens *big.Int `json:"outputTokens,omitempty"`
	CachedTokens *big.Int `json:"cachedTokens,omitempty"`
	// ReasoningTokens is the part of OutputTokens that the model used to think. It is absent if the
	// provider reports none.
	ReasoningTokens *big.Int `json:"reasoningTokens,omitempty"`
	Cost            *float64 `json:"cost,omitempty"`
	Currency        string   `json:"currency,omitempty"`
}

// CostCall is the usage of one model call.
type CostCall struct {
	Usage

	Sequence int    `json:"sequence"`
	NodeID   string `json:"nodeId,omitempty"`
	// Attempt is the attempt of the node, from 0.
	Attempt int `json:"attempt"`
	// Retry means that the call repeats an earlier one.
	Retry bool `json:"retry"`
}

// Sum adds up the known values of calls.
type Sum struct {
	Calls int `json:"calls"`
	// Unknown counts the calls without reported tokens.
	Unknown      int      `json:"unknown"`
	InputTokens  *big.Int `json:"inputTokens,omitempty"`
	OutputTokens *big.Int `json:"outputTokens,omitempty"`
	CachedTokens *big.Int `json:"cachedTokens,omitempty"`
	// ReasoningTokens adds up the calls whose provider reports some; absent without one.
	ReasoningTokens *big.Int `json:"reasoningTokens,omitempty"`
	Cost            *float64 `json:"cost,omitempty"`
	Currency        string   `json:"currency,omitempty"`
}
