package anthropic

import "waybill.dev/waybill/services/dispatcher/provider/outbound"

// DefaultID is the provider's id unless the configuration gives another.
const DefaultID = "anthropic"

// DefaultBaseURL is the vendor's own address.
const DefaultBaseURL = "https://api.anthropic.com"

// Config names the vendor's API and the key to it. BaseURL is the address before
// /v1/messages; empty means DefaultBaseURL.
type Config outbound.Server

var rules = outbound.Rules{ID: DefaultID, BaseURL: DefaultBaseURL, Form: "http(s)://host[:port][/path]", Example: DefaultBaseURL, Adds: "/v1"}

// Validate returns all that is wrong, joined, each with the field, its value and
// the remedy.
func (c Config) Validate() error { return c.server().Validate(rules) }

func (c Config) server() outbound.Server { return outbound.Server(c).WithDefaults(rules) }
