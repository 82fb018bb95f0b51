package gemini

import "waybill.dev/waybill/services/dispatcher/provider/outbound"

// DefaultID is the provider's default id.
const DefaultID = "gemini"

// DefaultBaseURL is the vendor's address.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

// apiVersion is the API version that supports JSON Schema.
const apiVersion = "v1beta"

// vertexVersion is the API version of Vertex AI that supports JSON Schema.
const vertexVersion = "v1beta1"

// Config describes an account with the vendor. BaseURL is the vendor's address, or that of a
// gateway, without the version; empty uses DefaultBaseURL.
type Config outbound.Server

var rules = outbound.Rules{
	ID:      DefaultID,
	BaseURL: DefaultBaseURL,
	Form:    "http(s)://host[:port][/path]",
	Example: DefaultBaseURL,
	Adds:    "/" + apiVersion,
}

// Validate returns all problems, joined. Each names the field, its value and the remedy.
func (c Config) Validate() error { return c.server().Validate(rules) }

func (c Config) server() outbound.Server { return outbound.Server(c).WithDefaults(rules) }
