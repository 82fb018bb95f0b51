package fold

import (
	"encoding/json"
	"math/big"
	"strconv"

	"waybill.dev/waybill/protocol/view"
)

// payload holds the members of payloads that the fold reads. Numbers are parsed where they are
// used, because 0 and a missing or malformed number differ.
type payload struct {
	NodeID string `json:"nodeId"`
	TypeID string `json:"typeId"`

	OriginalProvider    string   `json:"originalProvider"`
	OriginalModel       string   `json:"originalModel"`
	FallbackProvider    string   `json:"fallbackProvider"`
	FallbackModel       string   `json:"fallbackModel"`
	FallbackAttempted   bool     `json:"fallbackAttempted"`
	Provider            string   `json:"provider"`
	Model               string   `json:"model"`
	MissingCapabilities []string `json:"missingCapabilities"`

	StopReason       string          `json:"stopReason"`
	PartialAvailable bool            `json:"partialPayloadAvailable"`
	OutputTokenCount json.RawMessage `json:"outputTokenCount"`
	RefusalText      string          `json:"refusalText"`
	SafetyCategory   string          `json:"safetyCategory"`
	Path             string          `json:"path"`
	ByteOffset       json.RawMessage `json:"byteOffset"`

	Attempt       json.RawMessage `json:"attempt"`
	Reason        string          `json:"reason"`
	PreviousError string          `json:"previousError"`
	TotalAttempts json.RawMessage `json:"totalAttempts"`
	FinalReason   string          `json:"finalReason"`
	FinalError    string          `json:"finalError"`

	Kind       string          `json:"kind"`
	Limit      json.RawMessage `json:"limit"`
	Observed   json.RawMessage `json:"observed"`
	ChildRunID string          `json:"childRunId"`

	IsLast bool       `json:"isLast"`
	Meta   view.Model `json:"meta"`

	InputTokens     json.RawMessage `json:"inputTokens"`
	OutputTokens    json.RawMessage `json:"outputTokens"`
	CacheReadTokens json.RawMessage `json:"cacheReadTokens"`
	CostEstimateUSD json.RawMessage `json:"costEstimateUsd"`
	Currency        string          `json:"currency"`

	Error     *nodeError                 `json:"error"`
	LastError *nodeError                 `json:"lastError"`
	Outputs   map[string]json.RawMessage `json:"outputs"`
	Turn      string                     `json:"turn"`

	Message string `json:"message"`
	Fields  struct {
		stamp

		Reason          string          `json:"reason"`
		ReasoningTokens json.RawMessage `json:"reasoningTokens"`

		RefusalMode  string   `json:"refusalMode"`
		Kind         string   `json:"kind"`
		AllowedKinds []string `json:"allowedKinds"`
	} `json:"fields"`
	Envelope stamp `json:"envelope"`

	ArtifactID   string `json:"artifactId"`
	ArtifactType string `json:"artifactType"`
	stamp
}

// stamp identifies the envelope that an event records (OpenWOP envelope contract §10).
type stamp struct {
	EnvelopeType string          `json:"envelopeType"`
	EnvelopeID   string          `json:"envelopeId"`
	Version      string          `json:"version"`
	Payload      json.RawMessage `json:"payload"`
	Answer       struct {
		Index json.RawMessage `json:"index"`
		Size  json.RawMessage `json:"size"`
		With  []int           `json:"with"`
	} `json:"answer"`
}

type nodeError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Details struct {
		AcceptedTypes []string `json:"acceptedTypes"`
		RefusedType   string   `json:"refusedType"`
	} `json:"details"`
}

// view returns the error as it is shown; nil without a code.
func (e *nodeError) view() *view.Error {
	if e == nil || e.Code == "" {
		return nil
	}
	return &view.Error{Code: e.Code, Message: e.Message}
}

// parse reads a payload. Members of another shape are left out.
func parse(raw json.RawMessage) *payload {
	p := &payload{}
	_ = json.Unmarshal(raw, p) // a mismatch does not end the decoding
	return p
}

// maxDigits limits a count, so that a document cannot make the sums expensive.
const maxDigits = 40

// count returns an integer of any size; nil if the value is not one.
func count(raw json.RawMessage) *big.Int {
	if len(raw) > maxDigits {
		return nil
	}
	n, ok := new(big.Int).SetString(string(raw), 10)
	if !ok {
		return nil
	}
	return n
}

// integer returns an integer of 64 bits; nil if the value is not one.
func integer(raw json.RawMessage) *int64 {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// whole returns an integer, or 0 if the value is not one.
func whole(raw json.RawMessage) int {
	if n := integer(raw); n != nil {
		return int(*n)
	}
	return 0
}

// amount returns a number; nil if the value is not one.
func amount(raw json.RawMessage) *float64 {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return nil
	}
	return &f
}
