package catalogue_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

// A document may name each dialect of the table, and no other.
func TestParse_TakesTheDialectsOfTheTable(t *testing.T) {
	t.Parallel()
	const doc = `{"version":1,"asOf":"2026-11-01","rules":[{"match":"m*","provider":"lab","schemaDialect":%q}]}`
	for _, v := range append(projection.Vendors(), projection.AsWritten) {
		c, err := catalogue.Parse(fmt.Appendf(nil, doc, v))
		require.NoError(t, err, v)
		e, ok := c.Lookup("lab", "m1")
		require.True(t, ok)
		require.Equal(t, string(v), e.SchemaDialect)
	}
	_, err := catalogue.Parse(fmt.Appendf(nil, doc, "acme"))
	require.ErrorContains(t, err, "/rules/0/schemaDialect")
}
