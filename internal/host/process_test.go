package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServe_RequiresATokenAndTLSForOtherMachines(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*Process)
		want   string // empty means fine
	}{
		"loopback":              {func(*Process) {}, ""},
		"loopback of version 6": {func(o *Process) { o.GRPCAddr = "[::1]:0" }, ""},
		"every address":         {func(o *Process) { o.GRPCAddr = ":9091" }, "give --token-file"},
		"a host name":           {func(o *Process) { o.GRPCAddr = "box:9091" }, "give --token-file"},
		"a token without TLS":   {func(o *Process) { o.GRPCAddr, o.TokenFile = "0.0.0.0:1", "t" }, "in clear"},
		"a token and TLS": {
			func(o *Process) { o.GRPCAddr, o.TokenFile, o.TLS.Cert, o.TLS.Key = "0.0.0.0:1", "t", "c", "k" },
			"",
		},
		"insecure on purpose":    {func(o *Process) { o.GRPCAddr, o.Insecure = "0.0.0.0:1", true }, ""},
		"half of a certificate":  {func(o *Process) { o.TLS.Cert = "c" }, "belong together"},
		"an address of no shape": {func(o *Process) { o.GRPCAddr = "9091" }, "want host:port"},
	} {
		o := DefaultProcess("127.0.0.1:0")
		tc.change(&o)
		err := o.Validate()
		if tc.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tc.want, name)
	}
}
