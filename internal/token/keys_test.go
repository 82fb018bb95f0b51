package token_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/token"
)

func key(b byte) []byte { return []byte(strings.Repeat(string(b), token.MinKey)) }

func TestParseKeys_ReadsVersionsAndRefusesInvalidKeys(t *testing.T) {
	t.Parallel()
	a, b := base64.StdEncoding.EncodeToString(key('a')), base64.RawURLEncoding.EncodeToString(key('\xfe'))
	host := key('h')
	for name, tc := range map[string]struct {
		list []string
		want token.Keys
		says string
	}{
		"none":              {nil, token.Keys{1: host}, ""},
		"one":               {[]string{"7=" + a}, token.Keys{7: key('a')}, ""},
		"the host's and others": {[]string{"1=host", "2=" + a, "3=" + b}, token.Keys{1: host, 2: key('a'), 3: key('\xfe')}, ""},
		"any order":         {[]string{"2=" + a, "1=host"}, token.Keys{1: host, 2: key('a')}, ""},
		"no version":        {[]string{a}, nil, "no. 1: must be VERSION=KEY"},
		"version 0":         {[]string{"0=" + a}, nil, "from 1"},
		"no key":            {[]string{"1="}, nil, "the key of version 1: must be base64 of at least 32"},
		"a short key":       {[]string{"1=host", "2=" + a[:20]}, nil, "no. 2: the key of version 2"},
		"no base64":         {[]string{"2=" + strings.Repeat("%", 50)}, nil, "the key of version 2"},
		"a version twice":   {[]string{"1=" + a, "1=" + b}, nil, "two keys have version 1"},
		"a key twice":       {[]string{"1=" + a, "2=" + a}, nil, "versions 1 and 2 have the same key"},
	} {
		got, err := token.ParseKeys(tc.list, host)
		require.Equal(t, tc.want, got, name)
		if tc.says == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tc.says, name)
		require.NotContains(t, err.Error(), a[:16], "an error shows no key")
	}
	require.Equal(t, []string{a}, token.Secrets([]string{"1=host", "2=" + a}))
}

func FuzzParseKeys(f *testing.F) {
	f.Add("1=host")
	f.Add("2=" + base64.StdEncoding.EncodeToString(key('a')))
	f.Add("-1==")
	f.Fuzz(func(t *testing.T, item string) {
		keys, err := token.ParseKeys([]string{item}, key('h'))
		if err != nil {
			return
		}
		require.NoError(t, keys.Check(), "what is read can sign")
	})
}

func TestCheck_NeedsAValidKey(t *testing.T) {
	t.Parallel()
	require.NoError(t, token.Keys{3: key('a')}.Check())
	for says, keys := range map[string]token.Keys{
		"a signing key is required": {}, "signing key 0": {0: key('a')}, "signing key 2": {1: key('a'), 2: key('b')[1:]},
	} {
		require.ErrorContains(t, keys.Check(), says)
	}
}

func TestFor_SeparatesPurposes(t *testing.T) {
	t.Parallel()
	keys := token.Keys{1: key('a'), 2: key('b')}
	one, err := keys.For("one")
	require.NoError(t, err)
	again, err := keys.For("one")
	require.NoError(t, err)
	other, err := keys.For("other")
	require.NoError(t, err)
	require.Equal(t, one, again)
	require.Equal(t, keys.Current(), one.Current())
	text := one.Sign([]byte("payload"))
	_, _, ok := one.Open(text)
	require.True(t, ok)
	for _, foreign := range []token.Keys{keys, other} {
		_, _, ok = foreign.Open(text)
		require.False(t, ok)
	}
}
