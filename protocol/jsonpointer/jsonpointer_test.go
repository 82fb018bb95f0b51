package jsonpointer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/jsonpointer"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	for name, token := range map[string]string{
		"": "", "plain": "plain", "a/b": "a~1b", "m~n": "m~0n", "~1": "~01", "/~": "~1~0", "~~//": "~0~0~1~1",
	} {
		require.Equal(t, token, jsonpointer.Escape(name))
		require.Equal(t, name, jsonpointer.Unescape(token))
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	require.Empty(t, jsonpointer.Of(), "the whole document")
	require.Equal(t, "/a/b~1c/", jsonpointer.Of("a", "b/c", ""))
}

func TestEscape_OfAPlainNameAllocatesNothing(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = jsonpointer.Unescape(jsonpointer.Escape("name")) }))
}
