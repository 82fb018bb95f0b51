package egress

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Bounds of a URL.
const (
	maxURL   = 2048
	maxName  = 253
	maxLabel = 63
)

// MalformedError means that a text is not an absolute URL.
type MalformedError struct{ Reason string }

func (e *MalformedError) Error() string { return e.Reason }

// CheckURL checks the text of a URL and returns it parsed. Errors: *MalformedError, and
// *RefusedError for a URL that must not be called. Neither repeats the URL.
func (p Policy) CheckURL(raw string) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, &MalformedError{"want at most " + strconv.Itoa(maxURL) + " characters"}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" || u.Opaque != "" || u.Hostname() == "" || strings.TrimSpace(raw) != raw {
		return nil, &MalformedError{"want an absolute URL, such as https://hooks.example/waybill"}
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, &MalformedError{"want a port from 1 to 65535"}
		}
	}
	switch {
	case u.Scheme != "https" && (!p.AllowPrivate || u.Scheme != "http"):
		return nil, refuse("want the scheme https")
	case u.User != nil:
		return nil, refuse("the URL must not contain a user or password")
	}
	return u, p.checkHost(u)
}

// checkHost checks the host of a URL: a name, or an address in its full form.
func (p Policy) checkHost(u *url.URL) error {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" || a.Is6() != strings.HasPrefix(u.Host, "[") {
			return refuse("the address has a zone or lacks its brackets")
		}
		return p.CheckAddr(a)
	}
	switch {
	case strings.HasPrefix(u.Host, "["):
		return refuse("the host is neither a name nor an address")
	case !validName(host):
		return refuse("the host is not a name: want letters, digits and hyphens; write other scripts as xn--")
	case numeric(host):
		return refuse("the host is an address in an ambiguous form; write it as a.b.c.d")
	case p.AllowPrivate || p.allowsName(host):
		return nil
	case reserved(host):
		return refuse("the host is not public")
	}
	return nil
}

// validName reports whether a host name is valid in the DNS. Underscores are allowed.
func validName(host string) bool {
	if host == "" || len(host) > maxName {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			c := label[i]
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

// numeric reports whether the last label is a number. Resolvers read such names as
// addresses: 2130706433, 0x7f.1 and 0177.0.0.1 all mean this machine.
func numeric(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

// reservedNames are the private top-level names: RFC 6761 and RFC 8375, ICANN's .internal
// under which clouds serve their metadata, and names common in clusters and offices.
var reservedNames = []string{
	"localhost", "internal", "local", "localdomain", "home.arpa", "intranet", "corp", "home", "lan", "private", "svc",
}

// reserved reports whether a name is not public: a reserved name, or one without a dot.
func reserved(host string) bool {
	if !strings.Contains(host, ".") {
		return true
	}
	for _, n := range reservedNames {
		if strings.HasSuffix(host, "."+n) {
			return true
		}
	}
	return false
}
