package dev

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/host"
)

func withKey(key string) options {
	return options{host: host.Options{Public: host.Public{APIKeys: []string{key}}}}
}

// What a host writes goes to journals and files (OpenWOP envelope contract §11,
// sinks).
func TestBanner_ShowsNoKeyThatWasGiven(t *testing.T) {
	t.Parallel()
	const key = "hk_live_51e07c3d9b2a4f68"
	var out strings.Builder
	banner(&out, withKey(key+"=acme:*"), host.Addresses{HTTP: "http://h"}, "")
	curls(&out, host.Addresses{HTTP: "http://h"}, key, "run_1")
	require.NotContains(t, out.String(), key)
	require.Contains(t, out.String(), "Authorization: Bearer <your key>")
}

func TestBanner_ShowsTheDefaultKey(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	banner(&out, withKey(host.DevKey+"=default:*"), host.Addresses{HTTP: "http://h"}, "")
	require.Contains(t, out.String(), "key    "+host.DevKey+"\n")
	require.Contains(t, out.String(), "Authorization: Bearer "+host.DevKey+"'")
}
