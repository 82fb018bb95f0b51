package a2a

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/stretchr/testify/require"
)

// An endpoint of a card is on the agent's host, and its version is one that the host speaks.
func FuzzCard(f *testing.F) {
	for _, s := range []string{
		`{"supportedInterfaces":[{"url":"http://h/a","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`,
		`{"url":"http://h","preferredTransport":"GRPC","additionalInterfaces":[{"url":"http://h/b","transport":"JSONRPC"}]}`,
		`{"url":"//h","protocolVersion":"0"}`, `{"supportedInterfaces":[null]}`, `[]`, `{"url":"http://H@h:x"}`,
	} {
		f.Add([]byte(s))
	}
	base, err := url.Parse("http://h")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, b []byte) {
		card, err := parseCard(b)
		if err != nil {
			return
		}
		at, err := endpoint(card, base)
		if err != nil {
			require.Less(t, len(err.Error()), 500)
			return
		}
		u, err := url.Parse(at.URL)
		require.NoError(t, err)
		require.True(t, strings.EqualFold(u.Host, "h"))
		require.Contains(t, []a2a.ProtocolVersion{"1.0", "0.3"}, at.ProtocolVersion)
	})
}

// The document of a response is valid, and its text can be read.
func FuzzDocument(f *testing.F) {
	for _, s := range []string{
		`{"result":{"task":{"status":{"state":"x"},"artifacts":[{"parts":[{"text":"a"},{"text":"b"},{"data":1}]}]}}}`,
		`{"result":{"kind":"message","parts":[{"kind":"text","text":"a"}]}}`, `{"result":null}`, `{"result":[1]}`, `{}`,
		`{"result":{"parts":[{"text":7},null,{"text":"\ud800"}]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		doc, err := document(b)
		if err != nil {
			return
		}
		require.True(t, json.Valid(doc))
		require.LessOrEqual(t, len(textOf(doc)), 2*len(doc)+1)
	})
}
