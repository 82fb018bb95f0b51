package runstate

import (
	"waybill.dev/waybill/protocol/cost"
	"waybill.dev/waybill/protocol/wire"
)

// applyCost sums what a node says it has cost besides calls of models: attributes of
// the closed list among the fields of a log entry.
func (s *State) applyCost(e wire.Event, p payload) {
	if e.CausationID != "" { // it tells of an envelope
		return
	}
	a := cost.Sanitize(p.Fields)
	if a == nil {
		return
	}
	s.Cost.Others++
	s.Cost.InputTokens += a.Tokens(cost.Input)
	s.Cost.OutputTokens += a.Tokens(cost.Output)
	if name, ok := a[cost.Provider].(string); ok {
		s.Cost.Provider, s.Cost.Model = name, ""
	}
	if usd, ok := a.Dollars(); ok {
		s.Cost.USD += usd
		s.Cost.PricedCalls++
	}
}

// applyPin keeps the first version that a run settles for: no later event changes it.
func (s *State) applyPin(p payload) {
	if _, pinned := s.Pins[p.ChangeID]; !pinned && p.ChangeID != "" {
		s.Pins[p.ChangeID] = p.Version
	}
}
