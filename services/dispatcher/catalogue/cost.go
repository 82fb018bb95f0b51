package catalogue

import (
	"math/big"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// Rates are prices of a million tokens each; nil: unknown.
type Rates struct {
	// Input is the price of input that no prompt cache has to do with.
	Input  *Rate `json:"input,omitempty"`
	Output *Rate `json:"output,omitempty"`
	// CacheRead and CacheWrite are those of input that was read from the vendor's
	// prompt cache, or written to it.
	CacheRead  *Rate `json:"cacheRead,omitempty"`
	CacheWrite *Rate `json:"cacheWrite,omitempty"`
}

// LongRates are what a call costs, all of it, whose input is longer than Over tokens.
type LongRates struct {
	Over int `json:"over"`
	Rates
}

// Prices are what a vendor asks for a model, in US dollars.
type Prices struct {
	Rates
	Long *LongRates `json:"long,omitempty"`
	// Until is the last day of these prices, Then are those after it; nil: unknown.
	Until string  `json:"until,omitempty"`
	Then  *Prices `json:"then,omitempty"`
}

// ratesFor are the rates of a call with so much input.
func (p *Prices) ratesFor(inputTokens int) Rates {
	if p.Long != nil && inputTokens > p.Long.Over {
		return p.Long.Rates
	}
	return p.Rates
}

// perMicro turns a number of tokens times a Rate, 10^-12 dollars, into millionths.
var perMicro = big.NewInt(1_000_000)

// Cost is what a call costs at the entry's prices, rounded once, to the nearest
// millionth of a dollar. It is not ok if a rate is unknown that the call needs, if
// the provider told no usage, or if what it told cannot be: an unknown cost is
// left out, never 0 (OpenWOP envelope contract §19.1). Prices that change on a day
// are for On to choose from.
func (e Entry) Cost(u provider.Usage) (usd float64, ok bool) {
	if e.Prices == nil || !u.Known {
		return 0, false
	}
	plain, all := u.InputTokens-u.CacheReadTokens-u.CacheWriteTokens, u.InputTokens
	if u.CacheApart {
		plain, all = u.InputTokens, u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens
	}
	rates := e.Prices.ratesFor(all)
	sum := new(big.Int)
	for _, part := range []struct {
		tokens int
		rate   *Rate
	}{
		{plain, rates.Input},
		{u.CacheReadTokens, rates.CacheRead},
		{u.CacheWriteTokens, rates.CacheWrite},
		{u.OutputTokens, rates.Output},
	} {
		switch {
		case part.tokens < 0:
			return 0, false
		case part.tokens == 0:
			continue
		case part.rate == nil:
			return 0, false
		}
		sum.Add(sum, new(big.Int).Mul(big.NewInt(int64(part.tokens)), big.NewInt(int64(*part.rate))))
	}
	half := new(big.Int).Rsh(perMicro, 1)
	micros := sum.Div(sum.Add(sum, half), perMicro)
	usd, _ = new(big.Rat).SetFrac(micros, perMicro).Float64()
	return usd, true
}
