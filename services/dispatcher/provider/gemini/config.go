package gemini

import "waybill.dev/waybill/services/dispatcher/provider/outbound"

// DefaultID is the provider's id when there is but one such account.
const DefaultID = "gemini"

// DefaultBaseURL is the vendor's address.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

// apiVersion is the one that has schemas in JSON Schema.
const apiVersion = "v1beta"

// Config names an account with the vendor. BaseURL is the vendor's address, or that of
// a gateway before it, without the version; empty means DefaultBaseURL.
type Config outbound.Server

var rules = outbound.Rules{ID: DefaultID, BaseURL: DefaultBaseURL, Form: "http(s)://host[:port][/path]", Example: DefaultBaseURL, Adds: "/" + apiVersion}

// Validate returns all that is wrong, joined, each with the field, its value and
// the remedy.
func (c Config) Validate() error { return c.server().Validate(rules) }

func (c Config) server() outbound.Server { return outbound.Server(c).WithDefaults(rules) }
