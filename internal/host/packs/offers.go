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

// AcceptorOffers is what packs can count on where there is only an acceptor.
func AcceptorOffers() pack.Host {
	return pack.Host{
		Protocol: wire.ProtocolVersion, InRange: inRange, Capabilities: []string{"aiEnvelope", "host.aiEnvelope"}, Types: node.Builtin().IDs(),
	}
}

// inRange holds a version to a range of versions, written as npm writes them.
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

// HostOffers is what they can count on in a whole host with these providers, whose nodes ask the
// default model (PROVIDER/MODEL) unless they name another. What the gate could satisfy counts,
// though it be by a model that only the operator of its server knows to be there (OpenWOP envelope
// contract §16.5).
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
