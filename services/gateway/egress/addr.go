package egress

import "net/netip"

// notPublic4 are the IPv4 networks outside the public internet (IANA's registry of special
// purpose addresses), and the metadata address of a cloud that lies in a public network.
var notPublic4 = nets(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"168.63.129.16/32",
)

// public6 is the IPv6 range allocated to the public internet. notPublic6 are networks in it
// that are not public: Teredo and others of 2001::/23, documentation, 6to4, and segment
// routing's documentation. Teredo and 6to4 addresses embed an IPv4 address to which a relay
// forwards packets.
var (
	public6    = netip.MustParsePrefix("2000::/3")
	notPublic6 = nets("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "2620:4f:8000::/48")
	// nat64 embeds an IPv4 address in its last 32 bits.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

func nets(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// public reports whether an address belongs to the public internet. An IPv4 address embedded
// in it must be public, too.
func public(a netip.Addr) bool {
	a = a.Unmap() // ::ffff:a.b.c.d is a.b.c.d
	switch {
	case !a.IsValid() || a.Zone() != "":
		return false
	case a.Is4():
		return !in(notPublic4, a)
	case nat64.Contains(a):
		return public(embedded4(a))
	case !public6.Contains(a) || in(notPublic6, a):
		return false
	}
	return !isatap(a) || public(embedded4(a))
}

func in(list []netip.Prefix, a netip.Addr) bool {
	for _, n := range list {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// embedded4 returns the IPv4 address in the last 32 bits.
func embedded4(a netip.Addr) netip.Addr {
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

// isatap reports whether the interface identifier embeds an IPv4 address (RFC 5214).
func isatap(a netip.Addr) bool {
	b := a.As16()
	return (b[8] == 0 || b[8] == 2) && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
