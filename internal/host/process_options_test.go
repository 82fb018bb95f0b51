package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServe_GuardsWhatOtherMachinesReach(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*ProcessOptions)
		want   string // empty: fine
	}{
		"loopback":               {func(*ProcessOptions) {}, ""},
		"loopback of version 6":  {func(o *ProcessOptions) { o.GRPCAddr = "[::1]:0" }, ""},
		"every address":          {func(o *ProcessOptions) { o.GRPCAddr = ":9091" }, "give --token-file"},
		"a host name":            {func(o *ProcessOptions) { o.GRPCAddr = "box:9091" }, "give --token-file"},
		"a token without TLS":    {func(o *ProcessOptions) { o.GRPCAddr, o.tokenFile = "0.0.0.0:1", "t" }, "in clear"},
		"a token and TLS":        {func(o *ProcessOptions) { o.GRPCAddr, o.tokenFile, o.TLSCert, o.TLSKey = "0.0.0.0:1", "t", "c", "k" }, ""},
		"insecure on purpose":    {func(o *ProcessOptions) { o.GRPCAddr, o.insecure = "0.0.0.0:1", true }, ""},
		"half of a certificate":  {func(o *ProcessOptions) { o.TLSCert = "c" }, "belong together"},
		"an address of no shape": {func(o *ProcessOptions) { o.GRPCAddr = "9091" }, "want host:port"},
	} {
		o := ProcessOptions{GRPCAddr: "127.0.0.1:0"}
		tc.change(&o)
		err := o.Validate()
		if tc.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tc.want, name)
	}
}
