// Package egress calls URLs that callers gave: webhooks and callbacks. It prevents such a URL
// from reaching private addresses: this machine, its networks, and the metadata service of its
// cloud (OpenWOP host contract §10.6).
//
// A URL is checked three times. CheckURL checks its text. Resolve checks every address of its
// name. The dialer checks the addresses again for each connection and connects to a checked
// address, never to a name, so a later change of the name's addresses has no effect. Redirects
// are not followed.
package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// ErrRefused means that a URL or address must not be called.
var ErrRefused = errors.New("not a public address")

// RefusedError gives the reason, without the URL or address.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// Unwrap returns ErrRefused.
func (e *RefusedError) Unwrap() error { return ErrRefused }

func refuse(reason string) error { return &RefusedError{reason} }

// Policy decides which URLs may be called. The zero value allows public https URLs only.
type Policy struct {
	// AllowPrivate allows everything, including http. It is for tests only.
	AllowPrivate bool
	// names and nets are the operator's exceptions.
	names []string
	nets  []netip.Prefix
}

// NewPolicy makes a policy with exceptions: networks as CIDR or address, and names. A name
// with a leading dot allows all names below it. An exception for a name does not cover its
// addresses: they must be public or in an allowed network.
func NewPolicy(allow []string) (Policy, error) {
	var (
		p    Policy
		errs []error
	)
	for _, entry := range allow {
		name := strings.ToLower(strings.TrimSuffix(entry, "."))
		if net, err := netip.ParsePrefix(entry); err == nil {
			p.nets = append(p.nets, net.Masked())
		} else if addr, err := netip.ParseAddr(entry); err == nil && addr.Zone() == "" {
			addr = addr.Unmap()
			p.nets = append(p.nets, netip.PrefixFrom(addr, addr.BitLen()))
		} else if validName(strings.TrimPrefix(name, ".")) {
			p.names = append(p.names, name)
		} else {
			errs = append(errs, fmt.Errorf("%q: want a network such as 10.1.0.0/16, an address, or a name such as hooks.example or .example", entry))
		}
	}
	return p, errors.Join(errs...)
}

// allowsName reports whether the operator has allowed a name.
func (p Policy) allowsName(host string) bool {
	return slices.ContainsFunc(p.names, func(n string) bool {
		return host == n || strings.HasPrefix(n, ".") && strings.HasSuffix(host, n)
	})
}

// CheckAddr checks an address.
func (p Policy) CheckAddr(a netip.Addr) error {
	if p.AllowPrivate {
		return nil
	}
	if slices.ContainsFunc(p.nets, func(n netip.Prefix) bool { return n.Contains(a.Unmap()) }) {
		return nil
	}
	if !public(a) {
		return refuse("the host has an address that is not public")
	}
	return nil
}
