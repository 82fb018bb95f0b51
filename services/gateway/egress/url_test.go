package egress_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/gateway/egress"
)

// OpenWOP host contract §10.6: URLs that this host must not call.
func TestCheckURL_RejectsURLsThatAreNotPublic(t *testing.T) {
	t.Parallel()
	for _, raw := range hostile {
		t.Run(raw, func(t *testing.T) {
			t.Parallel()
			_, err := egress.Policy{}.CheckURL(raw)
			require.ErrorIs(t, err, egress.ErrRefused)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

var hostile = []string{
	"http://hooks.example/", "ftp://hooks.example/", "gopher://hooks.example/",
	"HTTP://hooks.example/", "file://hooks.example/etc/passwd",
	"https://user:secret@hooks.example/", "https://secret@hooks.example/", "https://@hooks.example/",
	"https://localhost/", "https://LOCALHOST/", "https://localhost./", "https://a.localhost/",
	"https://localhost:8443/", "https://localhost.localdomain/",
	"https://metadata/", "https://metadata.google.internal/computeMetadata/v1/",
	"https://metadata.google.internal./", "https://a.b.internal/",
	"https://instance-data.ec2.internal/", "https://kubernetes/", "https://kubernetes.default.svc/",
	"https://x.svc.cluster.local/", "https://printer.local/",
	"https://router.lan/", "https://nas.home.arpa/", "https://wiki.corp/",
	"https://127.0.0.1/", "https://127.1.2.3/", "https://0.0.0.0/", "https://10.0.0.1/",
	"https://172.16.0.1/", "https://172.31.255.255/", "https://192.168.1.1/",
	"https://169.254.169.254/latest/meta-data/", "https://100.64.0.1/", "https://100.100.100.200/",
	"https://192.0.0.192/", "https://168.63.129.16/",
	"https://198.18.0.1/", "https://192.0.2.1/", "https://224.0.0.1/", "https://255.255.255.255/",
	"https://240.0.0.1/", "https://192.88.99.1/",
	// Other spellings of 127.0.0.1.
	"https://2130706433/", "https://0x7f000001/", "https://0x7f.0x0.0x0.0x1/", "https://0177.0.0.1/",
	"https://017700000001/", "https://127.1/", "https://127.0.1/",
	"https://127.0.0.1./", "https://0x7f.1/", "https://1/", "https://0/", "https://0x/",
	"https://127.0.0.01/", "https://256.256.256.256/", "https://1.2.3.4.5/", "https://a.0x1/",
	"https://１２７.０.０.１/", "https://127。0。0。1/", "https://ⓛocalhost/",
	"https://hööks.example/",
	"https://[::1]/", "https://[::]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/",
	"https://[::ffff:10.0.0.1]/", "https://[::127.0.0.1]/",
	"https://[0:0:0:0:0:ffff:a9fe:a9fe]/", "https://[fe80::1]/", "https://[fe80::1%25eth0]/",
	"https://[fc00::1]/", "https://[fd00:ec2::254]/", "https://[fec0::1]/",
	"https://[ff02::1]/", "https://[100::1]/", "https://[2001:db8::1]/", "https://[5f00::1]/",
	"https://[3fff::1]/",
	"https://[64:ff9b::127.0.0.1]/", "https://[64:ff9b::a9fe:a9fe]/", "https://[64:ff9b::10.0.0.1]/",
	"https://[64:ff9b:1::8.8.8.8]/",
	"https://[2002:7f00:1::]/", "https://[2002:a9fe:a9fe::1]/", "https://[2002:808:808::]/",
	"https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", "https://[2001::1]/",
	"https://[2600::5efe:127.0.0.1]/", "https://[2600::200:5efe:a00:1]/",
	"https://-a.example/", "https://a..example/", "https://hooks.example,127.0.0.1/",
	"https://hooks.example;/", "https://*.example/",
	"https://" + strings.Repeat("a", 64) + ".example/",
}

func TestCheckURL_AcceptsPublicURLs(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"https://hooks.example/", "https://HOOKS.example.:8443/a?b=c#d", "https://xn--hks-6qa.example/",
		"https://a_b.example/", "https://8.8.8.8/", "https://1.1.1.1:444/x",
		"https://[2606:4700:4700::1111]/", "https://[64:ff9b::8.8.8.8]/", "https://[::ffff:8.8.8.8]/",
		"https://internal.example/", "https://localhost.example/", "https://127.0.0.1.example/",
		"HTTPS://hooks.example", "https://3com.example/", "https://0x7f.example/",
	} {
		_, err := egress.Policy{}.CheckURL(raw)
		require.NoError(t, err, raw)
	}
}

func TestCheckURL_RejectsInvalidURLs(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", " ", "hooks.example", "/path", "//hooks.example/", "https://", "https:///path",
		"https:hooks.example", "https:/hooks.example", " https://hooks.example/",
		"https://hooks.example/ ",
		"https://hooks.example:0/", "https://hooks.example:99999/", "https://hooks.example:/",
		"https://hooks.example:x/", "https://[::1/", "https://a\x00.example/", "https://a.example/\n",
		"https://hooks.example/" + strings.Repeat("a", 2048),
		"mailto:a@b.example", "%", "https://%zz/",
		"https://%6cocalhost/", "https://127.0.0.%31/", "https://ho st.example/", "https://[v1.a]/",
	} {
		_, err := egress.Policy{}.CheckURL(raw)
		_, malformed := errors.AsType[*egress.MalformedError](err)
		require.True(t, malformed, "%q: %v", raw, err)
	}
}

func TestPolicy_AppliesTheOperatorsExceptions(t *testing.T) {
	t.Parallel()
	p, err := egress.NewPolicy([]string{"10.1.0.0/16", "fd00:1::/32", "192.168.7.7", "hooks.internal", ".corp"})
	require.NoError(t, err)
	for raw, ok := range map[string]bool{
		"https://10.1.2.3/":          true,
		"https://10.2.2.3/":          false,
		"https://192.168.7.7/":       true,
		"https://192.168.7.8/":       false,
		"https://[fd00:1::1]/":       true,
		"https://[fd00:2::1]/":       false,
		"https://[::ffff:10.1.2.3]/": true,
		"https://hooks.internal/":    true,
		"https://HOOKS.internal./":   true,
		"https://other.internal/":    false,
		"https://x.hooks.internal/":  false,
		"https://a.b.corp/":          true,
		"https://corp/":              false,
		"http://hooks.internal/":     false,
		"https://u@hooks.internal/":  false,
		"https://8.8.8.8/":           true,
	} {
		_, err := p.CheckURL(raw)
		require.Equal(t, ok, err == nil, "%s: %v", raw, err)
	}
	for _, bad := range []string{"", "10.0.0.0/33", "a b", "https://x", "*.corp", "fe80::1%eth0"} {
		_, err := egress.NewPolicy([]string{"8.8.8.8", bad})
		require.ErrorContains(t, err, "want a network such as", bad)
	}
}

func TestPolicy_AllowsEverythingForTests(t *testing.T) {
	t.Parallel()
	p := egress.Policy{AllowPrivate: true}
	for _, raw := range []string{
		"http://127.0.0.1:8080/", "http://localhost/", "https://[::1]/", "http://receiver/",
		"https://169.254.169.254/",
	} {
		_, err := p.CheckURL(raw)
		require.NoError(t, err, raw)
	}
	for _, raw := range []string{"ftp://localhost/", "http://u:p@localhost/", "nothing"} {
		_, err := p.CheckURL(raw)
		require.Error(t, err, raw)
	}
}

// An accepted URL has a public address in any spelling: literals are checked by their address.
func FuzzCheckURL(f *testing.F) {
	for _, raw := range hostile {
		f.Add(raw)
	}
	f.Add("https://hooks.example:8443/a?b=c#d")
	f.Add("https://[64:ff9b::8.8.8.8]/")
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := egress.Policy{}.CheckURL(raw)
		if err != nil {
			_, malformed := errors.AsType[*egress.MalformedError](err)
			require.True(t, malformed || errors.Is(err, egress.ErrRefused), "%q", raw)
			return
		}
		require.Equal(t, "https", u.Scheme)
		require.Nil(t, u.User)
		host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
		require.NotContains(t, host, "%")
		if a, err := netip.ParseAddr(host); err == nil {
			require.True(t, a.IsGlobalUnicast() && !a.Unmap().IsPrivate() && !a.Unmap().IsLoopback() && !a.Unmap().IsLinkLocalUnicast(), "%q", raw)
			return
		}
		require.Contains(t, host, ".")
		for i := range len(host) {
			require.Less(t, host[i], byte(0x80), "%q", raw)
		}
		last := host[strings.LastIndexByte(host, '.')+1:]
		require.NotRegexp(t, `^([0-9]+|0x[0-9a-f]*)$`, last, "%q", raw)
		again, err := egress.Policy{}.CheckURL(u.String())
		require.NoError(t, err, "%q is accepted, but its re-encoded form %q is not", raw, u)
		require.Equal(t, u.Hostname(), again.Hostname())
	})
}
