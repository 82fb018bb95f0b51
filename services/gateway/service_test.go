package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/services/gateway"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/rest"
)

func sound() gateway.Config {
	return gateway.Config{
		Keys:          []auth.Spec{{Key: "k", Tenant: "acme", All: true}},
		REST:          rest.Config{MaxBodyBytes: 1},
		MaxStreams:    1,
		RunKey:        make([]byte, 32),
		InterruptKeys: token.Keys{1: make([]byte, 32)},
	}
}

func TestConfig_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	require.NoError(t, sound().Validate())
	cases := map[string]func(*gateway.Config){
		"gateway.keys":         func(c *gateway.Config) { c.Keys = nil },
		"gateway.maxBodyBytes": func(c *gateway.Config) { c.REST.MaxBodyBytes = 0 },
		"gateway.maxStreams":   func(c *gateway.Config) { c.MaxStreams = 0 },
		"gateway.basePath":     func(c *gateway.Config) { c.BasePath = "/a/" },
		"gateway.runKey":       func(c *gateway.Config) { c.RunKey = c.RunKey[:31] },
	}
	for name, spoil := range cases {
		c := sound()
		spoil(&c)
		require.ErrorContains(t, c.Validate(), name)
		_, err := gateway.New(c, gateway.Deps{})
		require.ErrorContains(t, err, name, "nothing is built from it")
	}
	err := gateway.Config{BasePath: "/"}.Validate()
	for name := range cases {
		require.ErrorContains(t, err, name, "all at once")
	}
}

func TestNew_RefusesAKeyGivenTwice(t *testing.T) {
	t.Parallel()
	c := sound()
	c.Keys = append(c.Keys, c.Keys[0])
	_, err := gateway.New(c, gateway.Deps{})
	require.ErrorContains(t, err, "duplicate")
}
