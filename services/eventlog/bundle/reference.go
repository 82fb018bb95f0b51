package bundle

import (
	"encoding/json"
	"net/url"
	"regexp"
)

// signature matches the signature of a token: base64url, a dot, base64url of at least 32 bytes;
// also several in a row.
var signature = regexp.MustCompile(`([A-Za-z0-9_-]{8,})(?:\.[A-Za-z0-9_-]{43,})+`)

// unsigned makes all tokens in a text invalid. Bundles are passed on: a reader may learn that an
// asset existed, but must not be able to fetch it (OpenWOP envelope contract §17, by reference).
func unsigned(s string) string { return signature.ReplaceAllString(s, "$1") }

// mediaType matches registered media types.
var mediaType = regexp.MustCompile(`^(application|audio|font|image|model|text|video)/[A-Za-z0-9][A-Za-z0-9.+-]{0,63}$`)

// assetPath matches the path of an asset served by a host.
var assetPath = regexp.MustCompile(`^(/v1/assets/|/v1/host/sample/assets/)[A-Za-z0-9_.-]+$`)

// reference returns the address of an asset without anything that grants access: the signature of a
// token, the query, user name and password. On foreign hosts the path is dropped too, because the
// model chose it. ok is false if the value is not an address, because it may be the asset itself.
func reference(raw json.RawMessage) (ref string, ok bool) {
	var s string
	_ = json.Unmarshal(raw, &s) // not a string: not an address
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", false
	}
	ref = u.Scheme + "://" + u.Host
	if assetPath.MatchString(u.EscapedPath()) {
		ref += u.EscapedPath()
	}
	return clip(unsigned(ref)), true
}
