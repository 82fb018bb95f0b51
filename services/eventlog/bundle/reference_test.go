package bundle

import (
	"net/url"
	"strings"
	"testing"

	"waybill.dev/waybill/protocol/strictjson"
)

// FuzzReference: whatever a model calls an address, nothing that opens it is left.
func FuzzReference(f *testing.F) {
	mac := strings.Repeat("A", 43)
	for _, s := range []string{
		"https://h/v1/assets/eyJrIjoxfQ." + mac,
		"http://a:b@h/x?y#z", "data:,x",
		"https://h/%2e" + mac,
		"https://[::1]:8/eyJrIjox.eyJrIjox." + mac,
		"//h/a",
		"https://h/eyJrIjox." + mac + "." + mac,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out, ok := reference(strictjson.Render(s))
		if !ok {
			return
		}
		if signature.MatchString(out) {
			t.Fatalf("%q became %q: it is still signed", s, out)
		}
		if strings.HasSuffix(out, cutMark) {
			return
		}
		u, err := url.Parse(out)
		if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			t.Fatalf("%q became %q: %v", s, out, err)
		}
	})
}
