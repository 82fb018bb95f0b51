package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
)

func TestObjectWriter_WritesMembersInOrder(t *testing.T) {
	t.Parallel()
	var w wire.ObjectWriter
	w.String("b", "<\"\n>")
	w.NonEmpty("gone", "")
	w.NonEmpty("c", "x")
	w.Int("n", -7)
	w.Raw("a", json.RawMessage(`[1.0, 2]`))
	require.Equal(t, `{"b":"<\"\n>","c":"x","n":-7,"a":[1.0, 2]}`, string(w.Close()))
}
