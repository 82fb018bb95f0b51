package keyring_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	library "github.com/zalando/go-keyring"

	"waybill.dev/waybill/internal/cli/keyring"
)

var prod = keyring.Entry{Context: "prod", URL: "https://a.example"}

// The library's mock is global, so these tests do not run in parallel.
func TestKeyring_StoresACredentialPerContextAndURL(t *testing.T) {
	library.MockInit()
	ctx := t.Context()
	require.NoError(t, keyring.Set(ctx, prod, "secret"))
	got, err := keyring.Get(ctx, prod)
	require.NoError(t, err)
	require.Equal(t, "secret", got)
	for _, other := range []keyring.Entry{
		{Context: "prod", URL: "https://b.example"},
		{Context: "test", URL: "https://a.example"},
	} {
		_, err := keyring.Get(ctx, other)
		require.ErrorIs(t, err, keyring.ErrNone)
		require.NoError(t, keyring.Delete(ctx, other), "deleting a missing entry is not an error")
	}
	require.NoError(t, keyring.Delete(ctx, prod))
	_, err = keyring.Get(ctx, prod)
	require.ErrorIs(t, err, keyring.ErrNone)
}

func TestKeyring_ReportsAMissingKeyring(t *testing.T) {
	library.MockInitWithError(errors.New("org.freedesktop.secrets was not provided"))
	ctx := t.Context()
	_, err := keyring.Get(ctx, prod)
	for _, err := range []error{err, keyring.Set(ctx, prod, "wb_secret"), keyring.Delete(ctx, prod)} {
		require.ErrorContains(t, err, "no usable keyring in this session: org.freedesktop.secrets")
		require.NotErrorIs(t, err, keyring.ErrNone)
		require.NotContains(t, err.Error(), "wb_secret")
	}
}

// The keyrings of macOS and Windows limit the length. The error must not claim a missing keyring.
func TestKeyring_ReportsACredentialThatIsTooLong(t *testing.T) {
	library.MockInitWithError(library.ErrSetDataTooBig)
	err := keyring.Set(t.Context(), prod, "wb_secret")
	require.ErrorIs(t, err, keyring.ErrTooLong)
	require.NotContains(t, err.Error(), "no keyring")
	require.NotContains(t, err.Error(), "wb_secret")
}

func TestKeyring_StopsWaitingWhenTheCommandIsCancelled(t *testing.T) {
	library.MockInitWithError(context.Canceled)
	_, err := keyring.Get(t.Context(), prod)
	require.ErrorIs(t, err, context.Canceled)
}
