package runstate

import (
	"waybill.dev/waybill/protocol/cost"
	"waybill.dev/waybill/protocol/wire"
)

// applyCost sums the costs that nodes report apart from model calls: attributes of the closed list
// in a log entry's fields.
func (s *State) applyCost(e wire.Event, p payload) {
	if e.CausationID != "" { // a log entry about an envelope
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

// applyPin records the first version that the run pins for a change; later events do not change it.
func (s *State) applyPin(p payload) {
	if _, pinned := s.Pins[p.ChangeID]; !pinned && p.ChangeID != "" {
		s.Pins[p.ChangeID] = p.Version
	}
}
