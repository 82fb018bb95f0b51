package anthropic

import "waybill.dev/waybill/services/dispatcher/provider/outbound"

// DefaultID is the provider's default id.
const DefaultID = "anthropic"

// DefaultBaseURL is the vendor's own address.
const DefaultBaseURL = "https://api.anthropic.com"

// Config describes the vendor's API and its key. BaseURL is the address before /v1/messages; empty
// uses DefaultBaseURL.
type Config outbound.Server

var rules = outbound.Rules{
	ID:      DefaultID,
	BaseURL: DefaultBaseURL,
	Form:    "http(s)://host[:port][/path]",
	Example: DefaultBaseURL,
	Adds:    "/v1",
}

// Validate returns all problems, joined. Each names the field, its value and the remedy.
func (c Config) Validate() error { return c.server().Validate(rules) }

func (c Config) server() outbound.Server { return outbound.Server(c).WithDefaults(rules) }
