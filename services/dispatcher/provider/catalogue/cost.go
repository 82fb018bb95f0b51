package catalogue

import (
	"math/big"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// Rates are prices per million tokens; nil means unknown.
type Rates struct {
	// Input is the price of input that the prompt cache neither read nor wrote.
	Input  *Rate `json:"input,omitempty"`
	Output *Rate `json:"output,omitempty"`
	// CacheRead and CacheWrite are the prices of input read from, or written to, the vendor's
	// prompt cache.
	CacheRead  *Rate `json:"cacheRead,omitempty"`
	CacheWrite *Rate `json:"cacheWrite,omitempty"`
}

// LongRates apply to a whole call whose input has more than Over tokens.
type LongRates struct {
	Over int `json:"over"`
	Rates
}

// Prices are a vendor's prices of a model in US dollars.
type Prices struct {
	Rates
	Long *LongRates `json:"long,omitempty"`
	// Until is the last day of these prices. Then are the prices after it; nil means unknown.
	Until string  `json:"until,omitempty"`
	Then  *Prices `json:"then,omitempty"`
}

// ratesFor returns the rates of a call with a number of input tokens.
func (p *Prices) ratesFor(inputTokens int) Rates {
	if p.Long != nil && inputTokens > p.Long.Over {
		return p.Long.Rates
	}
	return p.Rates
}

// perMicro converts tokens times a Rate, 10^-12 dollars, to millionths.
var perMicro = big.NewInt(1_000_000)

// Cost returns the cost of a call at the entry's prices, rounded once to the nearest millionth of a
// dollar. ok is false if a required rate is unknown, or if the reported usage is missing or
// impossible. An unknown cost is omitted, never 0 (OpenWOP envelope contract §19.1). Use At for
// prices that change on a day.
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
