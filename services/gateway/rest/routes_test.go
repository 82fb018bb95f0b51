package rest_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/rest"
)

// rule is one entry of proto/rest.yaml.
type rule struct {
	Selector     string
	Get          string
	Post         string
	Delete       string
	Body         string
	ResponseBody string `yaml:"response_body"`
}

func rules(t *testing.T) map[string]rule {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "proto", "rest.yaml"))
	require.NoError(t, err)
	var doc struct {
		HTTP struct{ Rules []rule }
	}
	require.NoError(t, yaml.Unmarshal(b, &doc))
	out := map[string]rule{}
	for _, r := range doc.HTTP.Rules {
		i := strings.LastIndexByte(r.Selector, '.')
		out["/"+r.Selector[:i]+"/"+r.Selector[i+1:]] = r
	}
	return out
}

func TestRoutes_AreThoseOfTheProtoMapping(t *testing.T) {
	t.Parallel()
	want := rules(t)
	require.Len(t, rest.Routes, len(want))
	for _, r := range rest.Routes {
		m, ok := want[r.Method]
		require.True(t, ok, r.Method)
		path, verb := m.Get, http.MethodGet
		if m.Post != "" {
			path, verb = m.Post, http.MethodPost
		}
		if m.Delete != "" {
			path, verb = m.Delete, http.MethodDelete
		}
		require.Equal(t, path, r.Path, r.Method)
		require.Equal(t, verb, r.HTTP, r.Method)
		require.Equal(t, m.ResponseBody, r.Document, r.Method)
		require.Equal(t, m.Body != "", r.Body != nil, r.Method)
		_, known := auth.ScopesOf(r.Method)
		require.True(t, known, r.Method)
	}
}

func TestRoutes_ReadPathMembersFromThePathOnly(t *testing.T) {
	t.Parallel()
	for _, r := range rest.Routes {
		if r.Body == nil {
			require.Empty(t, r.FromPath, r.Method)
			continue
		}
		fields := r.Body().ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			f := fields.Get(i)
			require.Equal(t, strings.Contains(r.Path, "{"+string(f.Name())+"}"), contains(r.FromPath, f.JSONName()), "%s %s", r.Method, f.Name())
		}
	}
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}
