// Package egress is the one way in which this host calls a URL that somebody else
// gave: webhooks and callbacks. It keeps such a URL from reaching what is not
// public: this machine, its networks, the metadata service of its cloud (OpenWOP
// host contract §10.6).
//
// A URL is looked at three times. CheckURL judges its text. Resolve judges every
// address its name has now. The dialer judges them again at each connection and
// connects to an address it has judged, never to a name, so that a name which means
// something else a moment later gains nothing. Redirects are never followed.
package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// ErrRefused says that a URL or an address must not be called.
var ErrRefused = errors.New("not a public address")

// RefusedError says why. Its text repeats neither the URL nor an address.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// Unwrap makes it an ErrRefused.
func (e *RefusedError) Unwrap() error { return ErrRefused }

func refuse(reason string) error { return &RefusedError{reason} }

// Policy is what may be called. The zero value lets through public https URLs only.
type Policy struct {
	// AllowPrivate lets everything through, http as well: for tests alone.
	AllowPrivate bool
	// names and nets are the operator's exceptions.
	names []string
	nets  []netip.Prefix
}

// NewPolicy makes a policy with exceptions: networks as CIDR or address, and names. A
// name that begins with a dot stands for all below it. An exception for a name lets
// the name through, not its addresses: those must be public, or in a network that is
// let through as well.
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

// named reports whether the operator has let a name through.
func (p Policy) named(host string) bool {
	return slices.ContainsFunc(p.names, func(n string) bool {
		return host == n || strings.HasPrefix(n, ".") && strings.HasSuffix(host, n)
	})
}

// CheckAddr judges an address.
func (p Policy) CheckAddr(a netip.Addr) error {
	if p.AllowPrivate {
		return nil
	}
	if slices.ContainsFunc(p.nets, func(n netip.Prefix) bool { return n.Contains(a.Unmap()) }) {
		return nil
	}
	if !public(a) {
		return refuse("the host has an address that is not a public one")
	}
	return nil
}
