package a2a

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"

	"waybill.dev/waybill/services/dispatcher/tool/outbound"
)

// spoken are the versions of the protocol that the host speaks, by their first number.
var spoken = map[string]a2a.ProtocolVersion{"1": a2a.Version, "0": a2av0.Version}

const spokenText = "this host speaks A2A 1.0 and 0.3 over JSON-RPC"

// errCard means that an agent's card cannot be read. It is no failure of the connection.
var errCard = errors.New("its card is no JSON object with the members of A2A 1.0 or 0.3; " + spokenText)

// errPage means that another document than JSON is at the address of an agent's card. It may be there for a
// while only.
var errPage = errors.New("answered with a page instead of its card")

// parseCard reads the endpoints of a card of either version, and nothing else: what the host does
// not use cannot make a card invalid.
func parseCard(doc []byte) (*a2a.AgentCard, error) {
	type endpoint struct {
		URL       string                `json:"url"`
		Transport a2a.TransportProtocol `json:"transport"`
		// Of A2A 1.0.
		Binding a2a.TransportProtocol `json:"protocolBinding"`
		Version a2a.ProtocolVersion   `json:"protocolVersion"`
		Tenant  string                `json:"tenant"`
	}
	var card struct {
		Interfaces []endpoint `json:"supportedInterfaces"`
		// Of A2A 0.3.
		endpoint
		Preferred  a2a.TransportProtocol `json:"preferredTransport"`
		Additional []endpoint            `json:"additionalInterfaces"`
	}
	switch err := json.Unmarshal(doc, &card); {
	case err == nil:
	case json.Valid(doc):
		return nil, errCard
	default: // such as the page of a proxy while the agent restarts
		return nil, errPage
	}
	out := &a2a.AgentCard{}
	for _, e := range card.Interfaces {
		if e.Version == "" {
			e.Version = a2a.Version // a card of A2A 0.3 has no such list
		}
		out.SupportedInterfaces = append(out.SupportedInterfaces, &a2a.AgentInterface{
			URL: e.URL, ProtocolBinding: e.Binding, ProtocolVersion: e.Version, Tenant: e.Tenant,
		})
	}
	if card.URL == "" {
		return out, nil
	}
	version := card.Version
	if version == "" {
		version = a2av0.Version
	}
	if card.Preferred == "" {
		card.Preferred = a2a.TransportProtocolJSONRPC // the default of A2A 0.3
	}
	for _, e := range append([]endpoint{{URL: card.URL, Transport: card.Preferred}}, card.Additional...) {
		out.SupportedInterfaces = append(out.SupportedInterfaces, &a2a.AgentInterface{
			URL: e.URL, ProtocolBinding: e.Transport, ProtocolVersion: version,
		})
	}
	return out, nil
}

// endpoint returns the JSON-RPC endpoint of the newest version that both sides speak, on the host of
// base. Its ProtocolVersion is the host's name of the version.
func endpoint(card *a2a.AgentCard, base *url.URL) (*a2a.AgentInterface, error) {
	var best *a2a.AgentInterface
	elsewhere := false
	for _, offer := range card.SupportedInterfaces {
		major, _, _ := strings.Cut(string(offer.ProtocolVersion), ".")
		version, known := spoken[major]
		if !known || offer.ProtocolBinding != a2a.TransportProtocolJSONRPC {
			continue
		}
		u, err := url.Parse(offer.URL)
		if err != nil || u.User != nil || !outbound.SameHost(u, base) {
			elsewhere = true
			continue
		}
		if best == nil || version > best.ProtocolVersion {
			usable := *offer
			usable.ProtocolVersion = version
			best = &usable
		}
	}
	switch {
	case best != nil:
		return best, nil
	case elsewhere:
		return nil, outbound.ErrOtherHost
	default:
		return nil, &offersError{describe(card.SupportedInterfaces)}
	}
}

// offersError means that an agent's card has no supported endpoint.
type offersError struct{ offers string }

// Error lists what the card offers, in words of the protocol only.
func (e *offersError) Error() string {
	return "its card names no JSON-RPC endpoint of a version that both speak; it offers " + e.offers + ", and " + spokenText
}

var (
	numbers  = regexp.MustCompile(`^[0-9]{1,3}(\.[0-9]{1,3}){1,2}$`)
	bindings = []a2a.TransportProtocol{
		a2a.TransportProtocolJSONRPC, a2a.TransportProtocolGRPC, a2a.TransportProtocolHTTPJSON,
	}
)

// describe lists endpoints. Words that are the agent's own are left out.
func describe(offers []*a2a.AgentInterface) string {
	var out []string
	for _, o := range offers {
		version, binding := "of an unknown version", "another protocol"
		if numbers.MatchString(string(o.ProtocolVersion)) {
			version = string(o.ProtocolVersion)
		}
		if slices.Contains(bindings, o.ProtocolBinding) {
			binding = string(o.ProtocolBinding)
		}
		if text := fmt.Sprintf("A2A %s over %s", version, binding); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	const most = 6
	switch {
	case len(out) == 0:
		return "none"
	case len(out) > most:
		out = append(out[:most], "others")
	}
	return strings.Join(out, ", ")
}
