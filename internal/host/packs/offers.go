package packs

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/catalogue"
	"waybill.dev/waybill/services/dispatcher/node"
)

// AcceptorOffers are the capabilities of an acceptor without a host.
func AcceptorOffers() pack.Host {
	return pack.Host{
		Protocol:     wire.ProtocolVersion,
		InRange:      inRange,
		Capabilities: []string{"aiEnvelope", "host.aiEnvelope"},
		Types:        node.Builtin().IDs(),
	}
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

// HostOffers are the capabilities of a whole host with these providers and default model
// (PROVIDER/MODEL). A capability counts if the model gate could satisfy it, even with a model that
// the catalogue does not list (OpenWOP envelope contract §16.5).
func HostOffers(c *catalogue.Catalogue, providers []string, defaultModel string) pack.Host {
	h := AcceptorOffers()
	h.Capabilities = append(h.Capabilities, "aiProviders", "providerUsage", "idempotency", "debugBundle", "modelCapabilities")
	id, model, _ := strings.Cut(defaultModel, "/")
	models := []modelgate.Model{{Provider: id, Model: model}}
	for _, id := range providers {
		models = append(models, c.Possible(id)...)
	}
	h.Model = func(capability string) bool {
		return slices.ContainsFunc(models, func(m modelgate.Model) bool {
			has, _ := c.Has(m, capability)
			return has
		})
	}
	return h
}
