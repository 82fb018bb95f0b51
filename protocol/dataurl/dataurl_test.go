package dataurl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/dataurl"
)

func TestHead_OfDataURLs(t *testing.T) {
	t.Parallel()
	for _, head := range []string{
		"data:,", "data:text/plain,", "data:text/plain;charset=utf-8;base64,", "DATA:;base64,", `data:text/plain;x="a, b",`,
		"data:whatever;base64,",
	} {
		require.Equal(t, len(head), dataurl.Head(head+"QUFB,more"), "%q", head)
		require.True(t, dataurl.HasScheme(head), "%q", head)
		_, body := dataurl.Cut(head + "QUFB,more")
		require.Equal(t, "QUFB,more", body, "%q", head)
	}
}

func TestHead_OfOrdinaryTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "data", "data:", "data: 3 customers, 2 orders", "Data: and/or, maybe", "data:the survey, which", "data: text/plain, they say",
		"see data:image/png;base64,AAAA", "data: a list; base64 of it, too", "metadata:image/png,",
		"data: text/plain;base64,", "data:text/plain ;base64,", " data:image/png;base64,",
	} {
		require.Zero(t, dataurl.Head(text), "%q", text)
	}
	head, body := dataurl.Cut("data: 3 customers, 2 orders")
	require.Equal(t, " 3 customers", head)
	require.Equal(t, " 2 orders", body)
}
