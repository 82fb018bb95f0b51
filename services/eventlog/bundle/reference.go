package bundle

import (
	"encoding/json"
	"net/url"
	"regexp"
)

// signature finds the end of a token that somebody has signed: base64url of
// something, a dot, base64url of 32 bytes or more; also several of these.
var signature = regexp.MustCompile(`([A-Za-z0-9_-]{8,})(?:\.[A-Za-z0-9_-]{43,})+`)

// unsigned is a text in which no token is good any more. A bundle is handed
// around; whoever reads it may learn which asset there was, and not see it
// (OpenWOP envelope contract §17, by reference).
func unsigned(s string) string { return signature.ReplaceAllString(s, "$1") }

// mediaType is a type as it is registered.
var mediaType = regexp.MustCompile(`^(application|audio|font|image|model|text|video)/[A-Za-z0-9][A-Za-z0-9.+-]{0,63}$`)

// assetPath is the path of an asset that a host serves.
var assetPath = regexp.MustCompile(`^(/v1/assets/|/v1/host/sample/assets/)[A-Za-z0-9_.-]+$`)

// reference is the address of an asset without what would open it: the signature
// of a token, a query, which can be one, and a name and password. Of one that is no
// host's the path is the model's words, and is left out. ok is false for what is no
// address, but may be the asset itself.
func reference(raw json.RawMessage) (ref string, ok bool) {
	var s string
	_ = json.Unmarshal(raw, &s) // what is no text is no address
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
