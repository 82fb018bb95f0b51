package main

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDescribe_NamesEachModuleAsItWasBuilt(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Path: "waybill.dev/waybill/cmd/waybill", Main: debug.Module{Path: "waybill.dev/waybill", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.org/a", Version: "v1.2.3", Sum: "h1:aaa="},
			{Path: "example.org/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/fork", Version: "v1.0.1+incompatible", Sum: "h1:bbb="}},
		},
		Settings: []debug.BuildSetting{{Key: "CGO_ENABLED", Value: "0"}},
	}
	got := describe(info, [32]byte{1})
	require.Equal(t, "waybill", got.Metadata.Component.Name)
	require.Equal(t, []property{{"go:build:CGO_ENABLED", "0"}}, got.Metadata.Component.Properties)
	var names []string
	for _, c := range got.Components {
		names = append(names, c.PURL)
	}
	require.Equal(t, []string{"pkg:golang/std@1.26.8", "pkg:golang/example.org/a@v1.2.3", "pkg:golang/example.org/fork@v1.0.1+incompatible"}, names)
	require.Equal(t, []property{{"go:sum", "h1:bbb="}}, got.Components[2].Properties)
	require.Equal(t, got, describe(info, [32]byte{1}), "one file, one document")
	require.NotEqual(t, got.Serial, describe(info, [32]byte{2}).Serial)
}
