package packs

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

// AcceptorOffers are the capabilities of an acceptor without a host.
func AcceptorOffers() pack.Host {
	types := node.Builtin()
	return pack.Host{
		Protocol:     wire.ProtocolVersion,
		InRange:      inRange,
		Capabilities: []string{"aiEnvelope", "host.aiEnvelope"},
		Types:        types.IDs(),
		CheckConfig:  types.CheckPackConfig,
		Outputs:      types.OutputsOf,
	}
}

// LintOffers are the capabilities of a host of this version whose models are unknown.
func LintOffers() pack.Host {
	h := HostOffers(Models{Catalogue: catalogue.Builtin()})
	h.Model = func(string) bool { return true }
	return h
}

// inRange reports whether a version is in a range, in the syntax of npm.
func inRange(version, versions string) (bool, error) {
	c, err := semver.NewConstraint(versions)
	if err != nil {
		return false, err
	}
	v, err := semver.NewVersion(version)
	if err != nil {
		return false, err
	}
	return c.Check(v), nil
}

// Models are the models of a host.
type Models struct {
	Catalogue *catalogue.Catalogue
	// Providers are the configured providers, Default is the default model, PROVIDER/MODEL.
	Providers []string
	Default   string
	// TrustsUnknown means that the model gate accepts models that the catalogue does not list.
	TrustsUnknown bool
}

// HostOffers are the capabilities of a whole host with these models. A capability of models counts if
// the model gate would dispatch to a model of the host: the default one, or one that the catalogue lists
// for a configured provider (OpenWOP envelope contract §16.5). General rules of the catalogue name
// models that a server may have, and do not count.
func HostOffers(m Models) pack.Host {
	h := AcceptorOffers()
	h.Capabilities = append(h.Capabilities, "aiProviders", "providerUsage", "idempotency", "debugBundle", "modelCapabilities")
	id, name, _ := strings.Cut(m.Default, "/")
	models := []modelgate.Model{{Provider: id, Model: name}}
	for _, known := range m.Catalogue.Known() {
		if slices.Contains(m.Providers, known.Provider) {
			models = append(models, known)
		}
	}
	if m.TrustsUnknown {
		for _, id := range m.Providers { // their models that are not listed
			models = append(models, modelgate.Model{Provider: id})
		}
	}
	h.Model = func(capability string) bool {
		return slices.ContainsFunc(models, func(of modelgate.Model) bool {
			has, known := m.Catalogue.Has(of, capability)
			return has || !known && m.TrustsUnknown
		})
	}
	return h
}

// WithoutEnvelopes are the capabilities of a host that accepts no envelopes.
func WithoutEnvelopes(h pack.Host) pack.Host {
	h.Capabilities = slices.DeleteFunc(slices.Clone(h.Capabilities), func(name string) bool {
		return slices.Contains([]string{"aiEnvelope", "host.aiEnvelope", "modelCapabilities"}, name)
	})
	h.Model = nil
	return h
}
